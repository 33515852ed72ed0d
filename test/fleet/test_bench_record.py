# SPDX-License-Identifier: Apache-2.0
"""What a record tells of a log, and when a load generator was too late for it to count."""

import math
from dataclasses import asdict

import pytest

from xinfer_ros.fleet.bench_record import Window, bench_record
from xinfer_ros.fleet.bench_run import LateGeneratorError, check_lateness

from .bench_results import WINDOW, fleet_result, request_log

NAMED = {
    'system', 'robots', 'x_ms', 'rps', 'p50_ms', 'p95_ms', 'p99_ms', 'server_cpu_ms_per_request',
    'wrong', 'unanswered',
}  # fmt: skip


def test_record_has_every_name_that_others_read() -> None:
    assert set(asdict(fleet_result(3, 40.0).record)) >= NAMED


def test_requests_sent_in_the_window_count() -> None:
    record = fleet_result(3, 40.0).record
    assert (record.requests, record.rps, record.p50_ms, record.p99_ms) == (30, 15.0, 40.0, 40.0)
    assert (record.attainment, record.goodput_hz) == (1.0, 15.0)
    assert record.server_cpu_ms_per_request == pytest.approx(1.0)
    assert record.decode_cpu_ms_per_request == pytest.approx(1 / 3)


def test_what_went_wrong_is_counted_apart() -> None:
    record = fleet_result(3, 40.0, unanswered=2, refused=3, wrong=4).record
    assert (record.unanswered, record.refused, record.wrong) == (2, 3, 4)
    assert record.rps == 12.5
    assert record.reasons == 'EXPIRED 3'
    assert fleet_result(3, 40.0).record.reasons == ''


def test_late_answers_are_answers_without_goodput() -> None:
    record = fleet_result(3, 150.0).record
    assert (record.attainment, record.goodput_hz, record.rps) == (0.0, 0.0, 15.0)


def test_window_without_an_answer_has_no_latency() -> None:
    record = fleet_result(1, 40.0, unanswered=10).record
    assert math.isnan(record.p50_ms)
    assert (record.rps, record.unanswered) == (0.0, 10)


def test_server_elsewhere_has_no_cpu_time() -> None:
    record = bench_record(
        request_log(1, 1.0), WINDOW, None, system='ours', robots=1, x_ms=None, images='raw', seed=1
    )
    assert record.server_cpu_ms_per_request is None


@pytest.mark.parametrize(('late_ms', 'lag_ms'), [(6.0, 0.0), (0.0, 6.0)])
def test_late_generator_gives_no_result(late_ms: float, lag_ms: float) -> None:
    log = request_log(2, 40.0, late_ms=late_ms, lag_ms=lag_ms)
    record = bench_record(
        log, WINDOW, None, system='ours', robots=2, x_ms=None, images='jpeg', seed=1
    )
    with pytest.raises(LateGeneratorError, match=r'Take fewer robots, more processes \(now 3'):
        check_lateness(record, 5.0, 3)
    check_lateness(record, 7.0, 3)


def test_window_tells_its_length() -> None:
    assert Window(from_ns=5, to_ns=2_000_000_005).seconds == 2.0
