# SPDX-License-Identifier: Apache-2.0
"""The front end against an engine that a test plays by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.engine.records import Dropped, SetBudget
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason, Rejected

from .canary import Canary
from .scripted_engine import CONTRACT, Bench, observation

ROWS = np.arange(24, dtype=np.float32).reshape(8, 3)


@pytest.fixture
def bench() -> Bench:
    """Give a front end whose engine is ready."""
    bench = Bench()
    bench.engine.become_ready(7)
    return bench


def test_an_observation_becomes_a_request_and_its_rows_an_answer(bench: Bench) -> None:
    robot = bench.robot('r0', joints=('c', 'a', 'b'))
    state = np.array([3, 1, 2], np.float32)
    bench.ask(robot, 1, executed_steps=40, episode=2, state=state)
    submit = bench.engine.submitted()[0]
    assert submit.budget_ns == 180_000_000
    assert bench.engine.life is not None
    np.testing.assert_array_equal(bench.engine.life.slots.state[submit.slot], [1, 2, 3])
    bench.engine.finish(submit, ROWS)
    answered, answer = bench.answers[0]
    assert answered is robot
    assert (answer.reason, answer.start_step, answer.episode) == (Reason.OK, 40, 2)
    assert answer.joint_names == ('c', 'a', 'b')
    np.testing.assert_array_equal(answer.rows, ROWS[:, [2, 0, 1]])


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_never_leave_the_server(bench: Bench, value: float) -> None:
    """CQ-10 at egress: the robot is told, nothing else is sent."""
    robot = bench.robot('r0')
    bench.ask(robot, 1)
    rows = ROWS.copy()
    rows[5, 1] = value
    bench.engine.finish(bench.engine.submitted()[0], rows)
    assert bench.reasons() == ['REJECTED_ROWS']
    assert bench.answers[0][1].rows.size == 0
    assert bench.front_end.tally.answered()[Reason.REJECTED_ROWS] == 1


def test_a_newer_request_supersedes_the_one_under_way(bench: Bench) -> None:
    robot = bench.robot('r0')
    bench.ask(robot, 1)
    bench.ask(robot, 2)
    assert bench.reasons() == ['SUPERSEDED']
    first, second = bench.engine.submitted()
    assert bench.engine.cancelled() == [first.key]
    assert first.slot != second.slot
    bench.engine.finish(first, ROWS)  # was running already: its rows go nowhere
    bench.engine.finish(second, ROWS)
    assert bench.reasons() == ['SUPERSEDED', 'OK']
    assert bench.answers[1][1].request_id == 2


def test_slots_come_back_however_a_request_ends(bench: Bench) -> None:
    robot = bench.robot('r0')
    for request_id in range(1, 41):
        if request_id % 4 == 1:
            bench.ask(robot, request_id)
            bench.engine.finish(bench.engine.submitted()[-1], ROWS)
        elif request_id % 4 == 2:
            bench.ask(robot, request_id)
            key = bench.engine.submitted()[-1].key
            bench.engine.drop(Dropped(key=key, reason=Reason.EXPIRED, detail='late'))
        elif request_id % 4 == 3:
            picture = CameraFrame(
                name='top', compressed=True, encoding='jpeg', height=0, width=0, step=0,
                is_bigendian=False, data=b'no picture',
            )  # fmt: skip
            bench.front_end.submit(robot, observation(robot, request_id, images=(picture,)), 0)
        else:
            bench.ask(robot, request_id)
            rows = np.full_like(ROWS, np.nan)
            bench.engine.finish(bench.engine.submitted()[-1], rows)
        assert len(bench.answers) == request_id
    assert 'REJECTED_NO_SLOT' not in bench.reasons()


def test_no_free_slot_is_an_answer(bench: Bench) -> None:
    robots = [bench.robot(f'r{i}') for i in range(4)]
    for robot in robots:
        bench.ask(robot, 1)
    bench.ask(robots[0], 2)
    assert bench.reasons() == ['REJECTED_NO_SLOT']


def test_when_the_engine_ends_everybody_under_way_is_told_and_the_epoch_changes(
    bench: Bench,
) -> None:
    robots = [bench.robot(f'r{i}') for i in range(3)]
    for robot in robots:
        bench.ask(robot, 1)
    old = bench.engine.submitted()
    bench.engine.die(8)
    assert bench.reasons() == ['ENGINE_RESTARTED'] * 3
    status = bench.front_end.status()
    assert (status.phase, status.epoch, status.engine_pid) == (ServerPhase.STARTING, 8, 0)
    bench.ask(robots[0], 2)
    assert bench.reasons()[-1] == 'NOT_READY'
    with pytest.raises(Rejected, match='NOT_READY'):
        bench.robot('r9')
    bench.engine.become_ready(8)
    assert bench.statuses[-1].phase is ServerPhase.READY
    bench.ask(robots[0], 3)
    bench.engine.finish(bench.engine.submitted()[-1], ROWS)
    assert bench.reasons()[-1] == 'OK'
    assert bench.answers[-1][1].epoch == 8
    bench.engine.finish(old[1], ROWS)  # an answer of the old life goes nowhere
    assert len(bench.answers) == 5


def test_every_observation_is_answered_exactly_once_at_shutdown(bench: Bench) -> None:
    robots = [bench.robot(f'r{i}') for i in range(3)]
    for robot in robots:
        bench.ask(robot, 1)
    bench.engine.finish(bench.engine.submitted()[0], ROWS)
    bench.front_end.close()
    assert bench.reasons() == ['OK', 'SHUTDOWN', 'SHUTDOWN']
    assert bench.engine.closed
    bench.ask(robots[0], 2)
    assert bench.reasons()[-1] == 'SHUTDOWN'


def test_a_silent_robot_loses_its_place_and_its_request(bench: Bench) -> None:
    robot, other = bench.robot('r0'), bench.robot('r1')
    bench.ask(robot, 1)
    bench.clock.advance(4_000_000_000)
    bench.ask(other, 1)
    bench.clock.advance(2_000_000_000)
    assert bench.front_end.forget_silent() == [robot]
    assert bench.reasons() == ['UNKNOWN_SESSION']
    assert bench.engine.cancelled() == [bench.engine.submitted()[0].key]
    assert bench.front_end.robots() == [other]


def test_a_full_fleet_refuses_the_next_robot_with_the_figure(bench: Bench) -> None:
    for i in range(4):
        bench.robot(f'r{i}')
    with pytest.raises(Rejected, match='4 robots are served, max_robots is 4'):
        bench.robot('r4')


def test_a_new_budget_reaches_the_request_under_way(bench: Bench) -> None:
    robot = bench.robot('r0')
    bench.front_end.set_budget(robot, 90_000_000)  # nothing under way: nothing to change
    bench.ask(robot, 1)
    bench.front_end.set_budget(robot, 90_000_000)
    assert bench.engine.sent[-1] == SetBudget(
        key=bench.engine.submitted()[0].key, budget_ns=90_000_000
    )
    for budget in (0, -1, 10**15):
        with pytest.raises(Rejected, match='REJECTED_BUDGET'):
            bench.front_end.set_budget(robot, budget)


def test_no_bytes_from_the_network_are_ever_executed(bench: Bench, tmp_path: Path) -> None:
    """SE-01 at the server: crafted and 10,000 random payloads; each is answered, none runs."""
    robot = bench.robot('r0')
    canary = Canary(tmp_path / 'canary')
    crafted = canary.payloads
    random = np.random.default_rng(11)
    for request_id in range(1, 10_001):
        data = random.bytes(int(random.integers(0, 200)))
        if request_id <= 2 * len(crafted):
            data = crafted[request_id % len(crafted)]
        compressed = bool(request_id % 2)
        picture = CameraFrame(
            name='top',
            compressed=compressed,
            encoding='jpeg' if compressed else data.decode('latin-1'),
            height=4,
            width=4,
            step=12,
            is_bigendian=False,
            data=data,
        )
        bench.ask(robot, request_id, images=(picture,), instruction=data.decode('latin-1'))
        assert len(bench.answers) == request_id
        assert bench.answers[-1][1].reason in (Reason.REJECTED_IMAGE, Reason.REJECTED_INSTRUCTION)
    canary.check()


def test_what_a_robot_is_told_holds_no_path_and_no_trace(bench: Bench) -> None:
    """SE-02."""
    robot = bench.robot('r0')
    bench.ask(robot, 1, state=np.full(3, np.nan, np.float32))
    bench.ask(robot, 2, images=())
    for _, answer in bench.answers:
        assert answer.detail
        assert '/' not in answer.detail
        assert 'Traceback' not in answer.detail
    assert CONTRACT.cameras[0].name in bench.answers[1][1].detail


def test_a_namespace_belongs_to_one_robot(bench: Bench) -> None:
    """Else each would read the other's answers, and take its own for refused."""
    robot = bench.robot('r0')
    registration = replace(robot.registration, robot_id='r1', instance=2)
    with pytest.raises(Rejected, match='/r0 belongs to r0'):
        bench.front_end.register(registration)
    bench.clock.advance(6_000_000_000)
    assert bench.front_end.register(registration)[0].registration.robot_id == 'r1'


@pytest.mark.parametrize('namespace', ['', '/', 'r1', '/a b', '/' + '/'.join(['x' * 60] * 4)])
def test_a_namespace_that_ros_would_refuse_is_refused(bench: Bench, namespace: str) -> None:
    """It must not reach the code that makes topics of it."""
    registration = replace(bench.robot('r0').registration, robot_id='r1', namespace=namespace)
    with pytest.raises(Rejected, match='REJECTED_NAME'):
        bench.front_end.register(registration)


def test_an_inactive_server_refuses_and_says_so(bench: Bench) -> None:
    robot = bench.robot('r0')
    bench.front_end.set_active(False)
    assert bench.statuses[-1].phase is ServerPhase.STOPPED
    bench.ask(robot, 1)
    assert bench.reasons() == ['NOT_READY']
    bench.front_end.set_active(True)
    assert bench.statuses[-1].phase is ServerPhase.READY
