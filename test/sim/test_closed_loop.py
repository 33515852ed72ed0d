# SPDX-License-Identifier: Apache-2.0
"""One robot in virtual time, driven through its real executor."""

import numpy as np
import pytest

from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.sim.closed_loop import ClosedLoop, ClosedLoopRun, ResponseDelay

from .scripted_body import HORIZON, MS, CountingBody, NumberedSource, settings


def _run(
    delay_ms: int, ticks: int = 60, mode: ExecutionMode = ExecutionMode.RTC
) -> tuple[ClosedLoopRun, CountingBody, NumberedSource]:
    body, source = CountingBody(), NumberedSource()
    delay = ResponseDelay(delay_ms * MS, 0.0, seed=1)
    run = ClosedLoop(settings(mode=mode), body, source, delay).run(ticks)
    return run, body, source


def _chunk_of_step(run: ClosedLoopRun) -> list[int]:
    """Return which chunk the row of each step came from, holds left out."""
    moved = np.flatnonzero(np.diff(run.steps, prepend=0))
    return [int(command[1]) for command in run.commands[moved]]


def test_measured_joints_are_held_until_the_first_chunk_comes() -> None:
    run, _, _ = _run(delay_ms=60)
    # asked at tick 0, there at 60 ms: its first row is that of tick 3
    assert run.steps[:4].tolist() == [0, 0, 0, 1]
    assert run.commands[:3].tolist() == [[0.0, 0.0]] * 3


def test_source_sees_the_body_as_it_was_when_the_request_left() -> None:
    run, _, source = _run(delay_ms=80)
    # one request every 100 ms, the delay is shorter
    assert source.views == [5 * number for number in range(len(source.views))]
    assert run.report.requests == len(source.views)


def test_every_step_is_played_once_and_in_order_whatever_the_delay() -> None:
    for delay_ms in (0, 10, 60, 90, 300):
        run, body, _ = _run(delay_ms)
        moved = np.flatnonzero(np.diff(run.steps, prepend=0))
        played = [float(body.obeyed[tick][0]) for tick in moved]
        assert played == list(range(len(played))), delay_ms


def test_chunk_takes_over_unnoticed_while_its_rows_are_promised_ones() -> None:
    run, _, source = _run(delay_ms=60)
    first = source.ties[1].executed_steps  # of the second chunk
    assert source.ties[1].frozen_steps == 4
    # when it comes two of its rows are over; two more repeat the first chunk, over-frozen
    assert _chunk_of_step(run)[first : first + 6] == [1, 1, 1, 1, 2, 2]
    assert run.report.overfrozen_steps == 2 * (run.report.chunks - 1)
    assert run.report.handoff_violations == 0


def test_chunk_that_comes_after_its_promised_rows_is_a_violation() -> None:
    run, _, _ = _run(delay_ms=115)  # five rows are played, four are promised
    assert run.report.handoff_violations == run.report.chunks - 1
    assert run.report.overfrozen_steps == 0


def test_robot_in_sync_mode_holds_its_last_command_while_it_waits() -> None:
    run, _, source = _run(delay_ms=60, ticks=50, mode=ExecutionMode.SYNC)
    assert all(len(tie.leftover) == tie.frozen_steps == 0 for tie in source.ties)
    begun = int(np.argmax(run.steps > 0))
    empty = begun + HORIZON - 1  # the tick of the last row, when it asks
    waiting = run.commands[empty : empty + 3]
    assert (waiting == waiting[0]).all()
    assert run.steps[empty + 3] == HORIZON + 1
    assert run.report.starved_ticks == 2 * (len(source.ties) - 1)


def test_run_ends_when_the_body_is_done() -> None:
    run = ClosedLoop(
        settings(), CountingBody(done_after=7), NumberedSource(), ResponseDelay(0, 0.0, seed=1)
    ).run(100)
    assert (run.done, run.ticks) == (True, 7)


def test_run_ends_when_enough_rows_are_played() -> None:
    run = ClosedLoop(
        settings(), CountingBody(), NumberedSource(), ResponseDelay(40 * MS, 0.0, seed=1)
    ).run(100, most_steps=30)
    assert (run.done, run.steps[-1]) == (True, 30)
    assert run.ticks == 32


def test_run_that_does_not_end_in_time_is_not_done() -> None:
    run, _, _ = _run(delay_ms=0, ticks=5)
    assert (run.done, run.ticks) == (False, 5)


def test_seams_are_those_that_the_executor_reports() -> None:
    run, _, _ = _run(delay_ms=60)
    assert len(run.jumps) == run.report.chunks - 1
    assert run.jumps.max() == pytest.approx(run.report.handoff_jump_max)


def test_delays_are_drawn_evenly_around_their_mean_and_repeat_with_the_seed() -> None:
    drawn = [ResponseDelay(100 * MS, 0.2, seed=3).draw_ns() for _ in range(2)]
    assert drawn[0] == drawn[1]
    delay = ResponseDelay(100 * MS, 0.2, seed=3)
    values = np.array([delay.draw_ns() for _ in range(2000)])
    assert 80 * MS <= values.min() < 82 * MS
    assert 118 * MS < values.max() <= 120 * MS
    assert abs(values.mean() - 100 * MS) < MS
