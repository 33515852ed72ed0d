# SPDX-License-Identifier: Apache-2.0
"""Results of rounds that were never played, for the tests of what is made of them."""

import numpy as np

from xinfer_ros.errors import Reason
from xinfer_ros.fleet.bench_record import ServerCpu, Window, bench_record
from xinfer_ros.fleet.bench_run import FleetResult
from xinfer_ros.robot.request_log import PARTS, RequestLog

MS = 1_000_000
FROM, PERIOD = 10_000 * MS, 200 * MS
WINDOW = Window(from_ns=FROM, to_ns=FROM + 2_000 * MS)


def request_log(
    robots: int, latency_ms: float, *, late_ms: float = 0.0, lag_ms: float = 0.0
) -> RequestLog:
    """Return the log of robots that ask every 200 ms for two seconds, after a second before."""
    steps = np.arange(-5, 10)
    sent = np.concatenate([FROM + PERIOD * steps + 7 * MS * robot for robot in range(robots)])
    return RequestLog(
        robot=np.repeat(np.arange(robots), len(steps)),
        due_ns=sent - round(late_ms * MS),
        sent_ns=sent,
        received_ns=sent + round(latency_ms * MS),
        budget_ns=np.full(len(sent), 100 * MS),
        reason=np.zeros(len(sent), np.int64),
        times_ns=np.zeros((len(sent), len(PARTS)), np.int64),
        wrong=np.zeros(robots, np.int64),
        lag_ns=np.full(50, round(lag_ms * MS)),
    )


def fleet_result(
    robots: int,
    latency_ms: float,
    *,
    system: str = 'ours',
    unanswered: int = 0,
    refused: int = 0,
    wrong: int = 0,
    seed: int = 1,
) -> FleetResult:
    """Return a round; what went wrong went wrong at the end of the window."""
    log = request_log(robots, latency_ms)
    log.received_ns[len(log) - unanswered :] = 0
    end = len(log) - unanswered
    log.reason[end - refused : end] = int(Reason.EXPIRED)
    log.wrong[0] = wrong
    record = bench_record(
        log,
        WINDOW,
        ServerCpu(total_s=0.03, decode_s=0.01),
        system=system,
        robots=robots,
        x_ms=5.0,
        images='jpeg',
        seed=seed,
    )
    return FleetResult(record=record, log=log, window=WINDOW)
