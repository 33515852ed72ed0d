# SPDX-License-Identifier: Apache-2.0
"""Calls of a round are kept, and a replay times the passes that have something to decide."""

import pytest

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.errors import ConfigError, XinferError
from xinfer_ros.fleet.decision_cost import (
    IMPLEMENTATIONS,
    Waiting,
    decision_cost,
    period_ms,
    record,
    replay,
)
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.journal import Call, CallKind, JournalReader
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.settings import policy_settings

CALIBRATION = load_calibration('paper')
MS = 1_000_000


class SteppingClock(SimulatedClock):
    """A clock that moves by a microsecond whenever it is read."""

    def now_ns(self) -> int:
        self.advance(1_000)
        return super().now_ns()


def _recorded() -> list[Call]:
    core = native_core(CALIBRATION, policy_settings('fifo', CALIBRATION))
    core.keep_journal(True)
    core.dispatch(0)
    core.submit(
        now_ns=1 * MS, key=1, robot=0, arrival_ns=0, budget_ns=90 * MS, reserved_ns=0,
        period_ns=180 * MS,
    )  # fmt: skip
    for at_ms in (1, 11):  # ViT, Prefill
        ((number, _, _),) = core.dispatch(at_ms * MS)
        core.dispatch((at_ms + 1) * MS)
        core.complete((at_ms + 10) * MS, number)
    return list(JournalReader().read(core.take_journal()))


def test_passes_with_work_waiting_are_told_from_the_others() -> None:
    waiting, found = Waiting(), []
    for call in _recorded():
        if call.kind is CallKind.DISPATCH:
            found.append(bool(waiting))
        waiting.take(call)
    assert found == [False, True, False, True, False]
    assert waiting  # for Action


def test_replay_times_passes_with_work_waiting_alone() -> None:
    fresh = native_core(CALIBRATION, policy_settings('fifo', CALIBRATION))
    times = replay(_recorded(), fresh, SteppingClock(), from_ns=0, passes=10)
    assert times == [1_000, 1_000]


def test_replay_starts_late_and_ends_after_enough_passes() -> None:
    calls = _recorded()
    for from_ns, passes, count in ((5 * MS, 10, 1), (0, 1, 1), (99 * MS, 10, 0)):
        fresh = native_core(CALIBRATION, policy_settings('fifo', CALIBRATION))
        times = replay(calls, fresh, SteppingClock(), from_ns=from_ns, passes=passes)
        assert len(times) == count


def test_core_that_decides_otherwise_is_found_out() -> None:
    used = native_core(CALIBRATION, policy_settings('fifo', CALIBRATION))
    replay(_recorded(), used, SteppingClock(), from_ns=0, passes=10)
    with pytest.raises(XinferError, match='the implementations differ'):
        replay(_recorded(), used, SteppingClock(), from_ns=0, passes=10)


@pytest.mark.parametrize('implementation', list(IMPLEMENTATIONS))
@pytest.mark.parametrize('policy', ['xinfer', 'foresight'])
def test_round_of_a_fleet_is_recorded_and_replayed(policy: str, implementation: str) -> None:
    settings = policy_settings(policy, CALIBRATION)
    recording = record(8, CALIBRATION, settings, seconds=0.4)
    cost = decision_cost(recording, implementation, SteppingClock(), repeats=2)
    assert (cost.implementation, cost.policy, cost.robots) == (implementation, policy, 8)
    assert (cost.p50_us, cost.p99_us, cost.repeats) == (1.0, 1.0, 2)
    assert cost.calls > 10


def test_large_fleets_ask_more_seldom() -> None:
    assert period_ms(8) == period_ms(18) == 180.0
    assert 1000 / period_ms(1000) == pytest.approx(100 / period_ms(100))


def test_recording_without_work_is_refused() -> None:
    recording = record(1, CALIBRATION, policy_settings('xinfer', CALIBRATION), seconds=0.001)
    with pytest.raises(ConfigError, match='record more seconds'):
        decision_cost(recording, 'native', SteppingClock(), repeats=1)
