# SPDX-License-Identifier: Apache-2.0
"""One second of an engine's life, from rows of a record."""

import numpy as np
import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.stage_second import prediction_errors, stage_second
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.predict.run_record import Change, RecordedRun, RunFacts

MS = 1_000_000
VIT, ACTION = int(Stage.VIT), int(Stage.ACTION)
START, END = int(Change.STARTED), int(Change.ENDED)
ROWS = [
    (0, 1, VIT, 1, START), (100, 2, ACTION, 1, START), (300, 1, VIT, 1, END),
    (300, 3, ACTION, 1, START), (400, 2, ACTION, 1, END), (900, 4, VIT, 1, START),
    (1100, 3, ACTION, 1, END),
]  # fmt: skip


def run() -> RecordedRun:
    """Return four units; the last one never ends."""
    return RecordedRun(
        transitions=np.array([(at * MS, *rest) for at, *rest in ROWS], np.int64),
        members=np.array([(1, 10, 0), (2, 11, 5), (3, 12, 6), (4, 13, 7)], np.int64),
        from_ns=0,
        calibration=load_calibration('paper'),
        facts=RunFacts(policy='fifo', model='tiny', date='2026-01-31'),
    )


def test_units_are_cut_to_the_span_and_stand_in_rows_where_they_overlap() -> None:
    second = stage_second(run(), 200 * MS)
    found = {
        bar.robots: (bar.stage, bar.row, bar.from_ms, bar.to_ms)
        for bar in second.bars
    }  # fmt: skip
    assert found == {
        (0,): (Stage.VIT, 0, 0.0, 100.0),
        (5,): (Stage.ACTION, 0, 0.0, 200.0),
        (6,): (Stage.ACTION, 1, 100.0, 900.0),
        (7,): (Stage.VIT, 0, 700.0, 1000.0),
    }


def test_busy_share_counts_overlapping_units_once() -> None:
    assert stage_second(run(), 200 * MS).busy == {
        Stage.VIT: pytest.approx(0.4),
        Stage.ACTION: pytest.approx(0.9),
    }


def test_span_without_units_is_empty() -> None:
    assert stage_second(run(), -5_000 * MS).bars == ()


def test_errors_are_those_of_the_window() -> None:
    errors = prediction_errors(run(), 0, 350 * MS)
    assert set(errors) == {Stage.VIT, Stage.ACTION}
    assert prediction_errors(run(), 2_000 * MS, 3_000 * MS) == {}
