# SPDX-License-Identifier: Apache-2.0
"""When an executor asks, with which budget, and what it reports."""

import numpy as np
import pytest

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.budgets.registry import sources_from_config
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.horizon import HorizonSettings
from xinfer_ros.robot.sensed import Sensed

from .driven_robot import MS, TICK_NS, DrivenRobot, moving_robot, numbered_rows


def test_refusal_is_counted_and_answered_with_a_pause() -> None:
    robot = DrivenRobot(minimum_period_ns=10 * MS)
    draft = robot.ask_when_due()
    empty = np.zeros((0, 0), np.float32)
    assert robot.answer(draft, empty, reason=Reason.REJECTED_IMAGE) is Reason.REJECTED_IMAGE
    assert robot.executor.report().reasons == {Reason.REJECTED_IMAGE: 1}
    answered_ns = robot.clock.now_ns()
    robot.ask_when_due()
    assert robot.clock.now_ns() - answered_ns == 100 * MS


@pytest.mark.parametrize(
    ('pace_ms', 'next_ms'), [(0, 180), (100, 180), (250, 250), (400, 400), (900, 400), (-5, 180)]
)
def test_the_servers_pace_shifts_the_next_request_but_never_beyond_the_budget(
    pace_ms: int, next_ms: int
) -> None:
    """Next send s' = max(s + max(TE, pace), r): the rows are used at once, whatever the pace."""
    robot = DrivenRobot(budget_ns=400 * MS)
    draft = robot.ask_when_due()
    sent_ns = robot.clock.now_ns()
    robot.clock.advance(50 * MS)
    assert robot.answer(draft, ask_after_ns=pace_ms * MS) is Reason.OK
    assert robot.executor.tick() is not None
    robot.ask_when_due()
    assert robot.clock.now_ns() - sent_ns == next_ms * MS


def test_an_answer_that_comes_after_its_pace_is_followed_at_once() -> None:
    robot = DrivenRobot(budget_ns=400 * MS)
    draft = robot.ask_when_due()
    robot.clock.advance(390 * MS)
    answered_ns = robot.clock.now_ns()
    robot.answer(draft, ask_after_ns=300 * MS)
    robot.ask_when_due()
    assert robot.clock.now_ns() == answered_ns


def test_a_request_says_how_often_the_robot_may_ask() -> None:
    assert DrivenRobot(minimum_period_ns=150 * MS).ask_when_due().minimum_period_ns == 150 * MS


def test_unknown_session_makes_the_robot_register_again() -> None:
    robot = DrivenRobot()
    empty = np.zeros((0, 0), np.float32)
    robot.answer(robot.ask_when_due(), empty, reason=Reason.UNKNOWN_SESSION)
    assert robot.executor.session.grant is None
    assert robot.executor.session.due(robot.clock.now_ns())
    assert robot.executor.report().phase is ExecutorPhase.REGISTERING


def test_no_request_leaves_without_a_session() -> None:
    robot = DrivenRobot()
    fresh = ChunkExecutor(robot.settings)
    assert not fresh.request_is_due(0)
    assert fresh.begin_request(0) is None
    assert fresh.report().requests == 0


def test_budget_counts_for_the_request_in_flight_and_those_to_come() -> None:
    """A Budget changes both; the answer that came within the old one alone is late."""
    robot = DrivenRobot()
    first = robot.ask_when_due()
    robot.executor.set_budget(70 * MS)
    robot.clock.advance(100 * MS)
    robot.answer(first)
    second = robot.ask_when_due()
    assert (first.budget_ns, second.budget_ns) == (180 * MS, 70 * MS)
    robot.clock.advance(100 * MS)
    robot.answer(second)
    report = robot.executor.report()
    assert (report.chunks, report.on_time) == (2, 0)
    assert report.latency_p50_ns == 100 * MS


@pytest.mark.parametrize(('late_ns', 'on_time'), [(0, 1), (1, 0)])
def test_an_answer_that_takes_its_whole_budget_is_on_time(late_ns: int, on_time: int) -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    robot.clock.advance(180 * MS + late_ns)
    robot.answer(draft)
    assert robot.executor.report().on_time == on_time


@pytest.mark.parametrize('budget_ns', [0, -1, 10**15])
def test_budget_that_the_server_would_refuse_is_refused_at_once(budget_ns: int) -> None:
    """Else every observation from now on would come back as REJECTED_BUDGET."""
    robot = DrivenRobot()
    with pytest.raises(Rejected, match='REJECTED_BUDGET'):
        robot.executor.set_budget(budget_ns)
    assert robot.ask_when_due().budget_ns == 180 * MS


def test_ticks_before_the_first_row_are_not_starved() -> None:
    robot = DrivenRobot()
    robot.tick(10)
    assert (robot.executor.report().ticks, robot.executor.report().starved_ticks) == (0, 0)
    robot.answer(robot.ask_when_due(), numbered_rows(0, 2))
    robot.tick(5)
    assert (robot.executor.report().ticks, robot.executor.report().starved_ticks) == (5, 3)


def test_unreadable_message_is_counted_and_changes_nothing() -> None:
    robot = moving_robot()
    draft = robot.ask_when_due()
    assert (
        robot.executor.refuse(Rejected(Reason.REJECTED_ROWS, 'unreadable')) is Reason.REJECTED_ROWS
    )
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.answer(draft) is Reason.OK


def test_report_is_a_copy() -> None:
    robot = DrivenRobot()
    robot.executor.refuse(Rejected(Reason.REJECTED_ROWS, 'unreadable'))
    report = robot.executor.report()
    report.reasons.clear()
    report.chunks = 99
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.executor.report().chunks == 0


def test_the_tightest_source_makes_the_budget_and_says_why() -> None:
    gripper = sources_from_config(
        ExecutorConfig(budget_sources=('gripper',), keyframe_spacing_s=0.0333), ('arm', 'gripper')
    )
    robot = DrivenRobot(
        ('arm', 'gripper'), budget_sources=gripper, discrete_joints=('gripper',),
        minimum_period_ns=180 * MS,
    )  # fmt: skip
    rows = np.zeros((80, 2), np.float32)
    rows[60:, 1] = 1.0  # switches two seconds from now
    assert robot.ask_when_due().budget_ns == 180 * MS  # nothing is planned: no opinion
    robot.executor.supersede()
    robot.answer(robot.ask_when_due(), rows)
    assert robot.ask_when_due().budget_ns == 400 * MS
    assert robot.executor.report().budget_reason == 'gripper: no switch near'
    robot.tick(35)
    robot.executor.supersede()
    assert robot.ask_when_due().budget_ns == 90 * MS
    assert robot.executor.report().budget_reason == 'gripper: gripper switches in 0.87 s'


def test_a_starved_robot_is_not_tight_for_ever_after_a_switch() -> None:
    gripper = sources_from_config(
        ExecutorConfig(budget_sources=('gripper',), keyframe_spacing_s=0.0333), ('arm', 'gripper')
    )
    robot = DrivenRobot(
        ('arm', 'gripper'), budget_sources=gripper, discrete_joints=('gripper',)
    )  # fmt: skip
    rows = np.zeros((20, 2), np.float32)
    rows[15:, 1] = 1.0
    robot.answer(robot.ask_when_due(), rows)
    reasons = []
    for _ in range(5):
        robot.tick(20)
        robot.executor.supersede()
        robot.ask_when_due()
        reasons.append(robot.executor.report().budget_reason)
    assert reasons == ['gripper: gripper switched 0.13 s ago', *['constant'] * 4]


def test_a_planner_is_one_source_among_others() -> None:
    contact = sources_from_config(
        ExecutorConfig(budget_sources=('contact',), contact_efforts=('*=5.0',)), ('a', 'b')
    )
    robot = moving_robot(budget_sources=contact)
    robot.executor.set_budget(150 * MS, 'planner: insertion')
    touching = Sensed(state=np.zeros(2, np.float32), effort=np.array([0.0, 9.0], np.float32))
    free = Sensed(state=np.zeros(2, np.float32), effort=np.zeros(2, np.float32))
    for sensed, budget_ms, why in (
        (free, 150, 'planner: insertion'),
        (touching, 90, 'contact: b at effort 9'),
    ):
        robot.clock.advance(200 * MS)
        robot.tick(2)
        draft = robot.executor.begin_request(robot.clock.now_ns(), sensed)
        assert draft is not None
        assert draft.budget_ns == budget_ms * MS
        assert robot.executor.report().budget_reason == why


def test_a_robot_that_had_nothing_left_to_promise_asks_in_time_again() -> None:
    """The rule d <= s <= H - d holds for the d that it needs, or it would starve each time."""
    horizon = HorizonSettings(
        shortest_ns=100 * MS, start_ns=100 * MS, longest_ns=5000 * MS,
        keyframe_spacing_ns=TICK_NS, compared=np.array([True, True]),
    )  # fmt: skip
    robot = DrivenRobot(horizon=horizon, commitment_steps=6)
    for _ in range(60):  # until 14 of the 20 rows run before the next request
        draft = robot.ask_when_due()
        robot.answer(draft, numbered_rows(draft.executed_steps, 20))
        robot.tick(round(draft.minimum_period_ns / TICK_NS))
    assert draft.minimum_period_ns == 14 * TICK_NS
    robot.tick(50)
    draft = robot.ask_when_due()
    assert (draft.commitment_steps, draft.minimum_period_ns) == (0, 14 * TICK_NS)


def test_the_period_follows_what_chunks_say_within_its_bounds() -> None:
    horizon = HorizonSettings(
        shortest_ns=120 * MS, start_ns=180 * MS, longest_ns=360 * MS,
        keyframe_spacing_ns=TICK_NS, compared=np.array([True, False]),
    )  # fmt: skip
    robot = DrivenRobot(horizon=horizon, commitment_steps=3)
    periods = []
    for number in range(40):
        draft = robot.ask_when_due()
        rows = numbered_rows(draft.executed_steps, 50)
        rows[:, 0] += 30.0 * (number % 2) * (number > 20)  # from then on chunks contradict
        robot.answer(draft, rows, frozen_steps=draft.commitment_steps)
        robot.tick(4)
        periods.append(robot.executor.report().minimum_period_ns // MS)
    assert periods[0] == 180
    assert max(periods) == 360
    assert periods[-1] == 120
    assert robot.ask_when_due().minimum_period_ns == 120 * MS
