# SPDX-License-Identifier: Apache-2.0
"""What an executor does not take from a server, and what it counts."""

import numpy as np
import pytest

from xinfer_ros.core.metrics import ExecutorPhase
from xinfer_ros.errors import Reason
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.robot.session import Grant

from .driven_robot import GRANT, MS, TICK_NS, DrivenRobot, moving_robot, numbered_rows

BAD = {
    'one NaN in row 20': (20, np.nan),
    'one +inf': (20, np.inf),
    'one -inf': (49, -np.inf),
}


@pytest.mark.parametrize(('row', 'value'), BAD.values(), ids=list(BAD))
def test_chunk_that_is_not_finite_is_refused_and_the_queue_goes_on(row: int, value: float) -> None:
    """CQ-10: at the executor's ingress; the counter rises by one."""
    names = tuple('abcdefg')
    robot = DrivenRobot(names)
    robot.answer(robot.ask_when_due())
    robot.tick(5)
    draft = robot.ask_when_due()
    rows = numbered_rows(5, 50, 7)
    rows[row, 3] = value
    assert robot.answer(draft, rows) is Reason.REJECTED_ROWS
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.steps(45) == list(range(5, 50))


def test_chunk_without_rows_is_refused_and_the_queue_goes_on() -> None:
    """CQ-10: 0 rows."""
    robot = moving_robot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, np.zeros((0, 2), np.float32)) is Reason.REJECTED_ROWS
    assert robot.executor.report().reasons == {Reason.REJECTED_ROWS: 1}
    assert robot.steps(60) == list(range(50))


def test_no_fuzzed_chunk_ever_brings_a_value_that_is_not_finite() -> None:
    """CQ-10: 10 000 fuzzed chunks."""
    generator = np.random.default_rng(10)
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0], np.float32)
    robot = DrivenRobot(backoff_ns=10 * MS, minimum_period_ns=10 * MS)
    refused = accepted = 0
    for _ in range(10_000):
        draft = robot.ask()
        assert draft is not None
        shape = generator.integers(0, 6), generator.choice([2, 2, 2, 2, 2, 1, 3])
        rows = generator.standard_normal(shape).astype(np.float32)
        bad = generator.random(shape) < generator.choice([0, 0.02, 0.5])
        rows[bad] = generator.choice(odd, int(bad.sum()))
        good = rows.shape[1] == 2 and len(rows) > 0 and bool(np.isfinite(rows).all())
        reason = robot.answer(draft, rows)
        assert (reason is Reason.OK) == good
        accepted += good
        refused += not good
        row = robot.executor.tick()
        assert row is None or np.isfinite(row.values).all()
        robot.clock.advance(10 * MS)
    report = robot.executor.report()
    assert (report.chunks, sum(report.reasons.values())) == (accepted, refused)
    assert min(accepted, refused) > 1000


def test_joints_are_assigned_by_name() -> None:
    """CQ-11: robot joints [b, a, c], chunk joints [a, b, c]."""
    robot = DrivenRobot(('b', 'a', 'c'))
    rows = np.tile(np.array([[1, 2, 3]], np.float32), (50, 1))
    draft = robot.ask_when_due()
    assert robot.answer(draft, rows, joint_names=('a', 'b', 'c')) is Reason.OK
    assert robot.executor.tick().values.tolist() == [2, 1, 3]


def test_order_of_joints_may_change_from_chunk_to_chunk() -> None:
    """CQ-11: nothing is remembered of the order of an earlier chunk."""
    robot = DrivenRobot(('b', 'a', 'c'))
    for names in (('a', 'b', 'c'), ('c', 'b', 'a'), ('a', 'b', 'c'), ('b', 'a', 'c')):
        value = {'a': 1, 'b': 2, 'c': 3}
        rows = np.tile(np.array([[value[name] for name in names]], np.float32), (50, 1))
        assert robot.answer(robot.ask_when_due(), rows, joint_names=names) is Reason.OK
        assert robot.executor.tick().values.tolist() == [2, 1, 3]


SIX = tuple('abcdef')


@pytest.mark.parametrize('columns', [5, 7, 32])
@pytest.mark.parametrize('named', [True, False])
def test_surplus_or_missing_columns_are_refused(columns: int, named: bool) -> None:
    """CQ-11: 6 joints and 5, 7 or 32 columns, each named or not; never cut or padded."""
    robot = DrivenRobot(SIX)
    robot.answer(robot.ask_when_due())
    names = tuple(f'{i}' for i in range(columns)) if named else SIX
    rows = np.ones((50, columns), np.float32)
    reason = robot.answer(robot.ask_when_due(), rows, joint_names=names)
    assert reason is Reason.REJECTED_COLUMNS
    assert robot.executor.report().reasons == {Reason.REJECTED_COLUMNS: 1}
    assert robot.executor.tick().values.shape == (6,)


@pytest.mark.parametrize('names', ['abcdex', 'abcdee', 'ABCDEF'])
def test_unknown_or_repeated_joint_name_is_refused(names: str) -> None:
    """CQ-11: the texts that core.chunk gives are tested there."""
    robot = DrivenRobot(SIX)
    reason = robot.answer(robot.ask_when_due(), joint_names=tuple(names))
    assert reason is Reason.REJECTED_COLUMNS
    assert robot.executor.tick() is None


@pytest.mark.parametrize(('speeds', 'first', 'taken'), [
    (False, 0, False), (False, 9, True), (True, 0, True), (True, 9, False),
])  # fmt: skip
def test_first_row_is_held_against_what_was_measured(
    speeds: bool, first: int, taken: bool
) -> None:
    """CQ-01's kind: the arm stands at 10; rows that are speeds start from none."""
    none = np.full(2, np.inf)
    limits = RowLimits(
        joint_names=('a', 'b'), lower=-none, upper=none, velocity=none, step=np.full(2, 2.0)
    )
    robot = DrivenRobot(limits=limits, rows_are_velocities=speeds)
    measured = Sensed(state=np.array([10.0, 0.0], np.float32))
    draft = robot.executor.begin_request(robot.clock.now_ns(), measured)
    assert draft is not None
    expected = Reason.OK if taken else Reason.REJECTED_LIMITS
    assert robot.answer(draft, numbered_rows(first, 50)) is expected


def test_chunk_of_another_spacing_is_refused() -> None:
    """RT-06: rows are played at the robot's own rate or not at all."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, keyframe_spacing_ns=2 * TICK_NS) is Reason.REJECTED_SPACING
    assert robot.tick(1) == [None]


def test_chunk_of_another_session_is_ignored_and_counted() -> None:
    """SE-02: a wrong session nonce."""
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, session=1) is Reason.WRONG_SESSION
    report = robot.executor.report()
    assert (report.misaddressed, report.reasons) == (1, {Reason.WRONG_SESSION: 1})
    assert robot.tick(1) == [None]
    assert robot.answer(draft) is Reason.OK


def test_answer_of_a_session_that_was_ours_is_late_and_not_misaddressed() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    robot.executor.granted(Grant(session=78, epoch=5, lease_ns=GRANT.lease_ns), 0)
    assert robot.answer(draft) is Reason.WRONG_SESSION
    assert robot.executor.report().misaddressed == 0


def test_chunk_of_an_old_epoch_is_refused() -> None:
    """SL-02: answers of the old epoch are refused, and the robot moves on under the new one."""
    robot = moving_robot()
    late = robot.ask_when_due()
    now_ns = robot.clock.now_ns()
    robot.executor.session.server_announced(6, ready=True)
    assert robot.ask() is None
    robot.executor.granted(Grant(session=77, epoch=6, lease_ns=GRANT.lease_ns), now_ns)
    fresh = robot.ask_when_due()
    assert robot.clock.now_ns() == now_ns
    assert robot.answer(late) is Reason.WRONG_EPOCH
    assert robot.answer(fresh, epoch=5) is Reason.WRONG_EPOCH
    assert robot.answer(fresh, epoch=6) is Reason.OK
    assert robot.executor.report().epoch == 6


def test_rows_run_out_before_the_robot_holds_when_the_server_dies() -> None:
    """SL-02: 15 queued rows run, the pause comes at the next tick, and requests do not pile up."""
    robot = moving_robot(queued=15)
    robot.ask_when_due()
    assert robot.steps(15) == list(range(15))
    assert robot.executor.report().phase is ExecutorPhase.HOLDING
    assert robot.tick(3) == [None] * 3
    assert robot.executor.report().starved_ticks == 3


def test_request_that_was_never_sent_cannot_be_answered() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert robot.answer(draft, request_id=draft.request_id + 1) is Reason.WRONG_EPISODE
    assert robot.answer(draft, episode=1) is Reason.WRONG_EPISODE
    assert robot.executor.report().misaddressed == 2
    assert robot.tick(1) == [None]
