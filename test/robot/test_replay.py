# SPDX-License-Identifier: Apache-2.0
"""The same events give the same robot, to the nanosecond, whatever the clock shows."""

from dataclasses import dataclass

import numpy as np
import pytest

from xinfer_ros.errors import Reason

from .driven_robot import MS, DrivenRobot, numbered_rows


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """
    What a robot did in a trace of events.

    :param sends: when each request left after the beginning [ns], and what was promised
    :param skips: rows of each chunk that were skipped
    :param steps: steps and chunks of the rows that ran
    """

    sends: tuple[tuple[int, int], ...]
    skips: tuple[int, ...]
    steps: tuple[tuple[int, float], ...]


def _replay(seed: int, begin_ns: int) -> Replayed:
    """
    Play 2,000 events that depend on the seed alone.

    A tenth of the answers are lost, a tenth are refusals, the others take 20 to 900 ms.
    """
    random = np.random.default_rng(seed)
    robot = DrivenRobot(minimum_period_ns=500 * MS, budget_ns=450 * MS, commitment_margin_steps=1)
    robot.clock.advance(begin_ns)
    sends, skips, steps = [], [], []
    due: list[tuple[int, object]] = []
    for _ in range(2000):
        now_ns = robot.clock.now_ns()
        draft = robot.ask()
        if draft is not None:
            sends.append((now_ns - begin_ns, draft.commitment_steps))
            if random.random() < 0.9:
                due.append((now_ns + int(random.integers(20 * MS, 900 * MS)), draft))
        for item in [item for item in due if item[0] <= now_ns]:
            due.remove(item)
            before = robot.executor.report()
            refused = {'reason': Reason.EXPIRED} if random.random() < 0.1 else {}
            rows = numbered_rows(item[1].executed_steps, 40, chunk=item[1].request_id)
            if robot.answer(item[1], rows, **refused) is Reason.OK:
                skips.append(before.executed_steps - item[1].executed_steps)
        row = robot.executor.tick()
        if row is not None:
            steps.append((row.step, float(row.values[1])))
        robot.clock.advance(int(random.integers(1, 40 * MS)))
    return Replayed(sends=tuple(sends), skips=tuple(skips), steps=tuple(steps))


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_two_replays_of_one_trace_send_and_skip_the_same(seed: int) -> None:
    """RT-07: bit-equal send instants and skips, even if the clock started elsewhere."""
    first = _replay(seed, 0)
    assert _replay(seed, 0) == first
    assert _replay(seed, 1_234_567_890_123_456_789) == first
    assert min(len(first.sends), len(first.skips)) > 25
    assert len(set(first.skips)) > 5
    gaps_ns = np.diff([at_ns for at_ns, _ in first.sends])
    assert gaps_ns.min() >= 500 * MS
    assert [step for step, _ in first.steps] == list(range(len(first.steps)))


def test_another_trace_gives_another_robot() -> None:
    assert _replay(1, 0) != _replay(2, 0)
