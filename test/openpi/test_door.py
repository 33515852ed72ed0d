# SPDX-License-Identifier: Apache-2.0
"""The websocket door: what robots are told, in which order, and how they come and go."""

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from xinfer_ros.engine.records import Dropped
from xinfer_ros.errors import Reason

from .door_bench import EPOCH, ROWS, WAIT_S, DoorBench, DoorRobot, observation, read


def test_a_robot_is_told_the_contract_and_gets_a_chunk_for_an_observation() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        told = robot.metadata
        assert (told['model'], told['action_horizon'], told['action_dim']) == ('scripted', 8, 3)
        assert told['joint_names'] == ['a', 'b', 'c']
        assert told['cameras'] == [{'name': 'top', 'height': 4, 'width': 4}]
        assert told['keys']['top'][0] == 'images/top'
        ours = told['xinfer']
        assert (ours['protocol'], ours['epoch'], ours['robot_id']) == (3, EPOCH, 'websocket_1')
        registered = bench.front_end.robots()[0]
        assert registered.registration.door == 'websocket'
        assert ours['session'] == registered.session
        robot.send(observation())
        request = bench.engine.next_request()
        assert (request.budget_ns, request.period_ns) == (400_000_000, 150_000_000)
        slots = bench.engine.life.slots
        np.testing.assert_array_equal(slots.state[request.slot], [1, 2, 3])
        assert bytes(slots.instruction[request.slot, :5]) == b'pick\x00'
        bench.engine.finish(request, ROWS, 90_000_000)
        answer = robot.answer()
        np.testing.assert_array_equal(answer['actions'], ROWS)
        assert answer['actions'].dtype == np.float32
        assert answer['xinfer'] == {
            'request_id': 1, 'episode': 0, 'session': registered.session, 'epoch': EPOCH,
            'start_step': 0, 'joint_names': ['a', 'b', 'c'], 'frozen_steps': 0,
            'degraded': False, 'spacing_s': 0.03, 'ask_after_s': 0.09,
        }  # fmt: skip
        timing = answer['server_timing']
        assert timing['infer_ms'] == pytest.approx(1e-5)
        assert timing['server_ms'] >= timing['decode_ms'] >= 0
        assert 'prev_total_ms' not in timing
        robot.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        assert robot.answer()['server_timing']['prev_total_ms'] > 0


def test_what_a_robot_wishes_reaches_the_scheduler() -> None:
    leftover = np.arange(12.0).reshape(4, 3)
    with DoorBench() as bench:
        robot = bench.robot()
        wish = {
            'robot_id': 'arm', 'budget_s': 0.1, 'period_s': 0.2, 'executed_steps': 40,
            'commitment_steps': 2, 'leftover': leftover, 'episode': 5, 'spacing_s': 0.05,
        }  # fmt: skip
        robot.send(observation(xinfer=wish))
        request = bench.engine.next_request()
        assert (request.budget_ns, request.period_ns) == (100_000_000, 200_000_000)
        slots = bench.engine.life.slots
        np.testing.assert_array_equal(slots.leftover[request.slot, :4], leftover)
        assert slots.commitment_steps[request.slot] == 2
        bench.engine.finish(request, ROWS)
        ours = robot.answer()['xinfer']
        assert (ours['start_step'], ours['episode'], ours['frozen_steps']) == (40, 5, 2)
        assert ours['spacing_s'] == 0.05
        named = [each for each in bench.front_end.robots() if each.seen_ns > 0]
        assert [each.registration.robot_id for each in named] == ['arm']


def test_a_robot_without_a_prompt_gets_the_default() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send({name: v for name, v in observation().items() if name != 'prompt'})
        request = bench.engine.next_request()
        assert bench.engine.life is not None
        text = bytes(bench.engine.life.slots.instruction[request.slot])
        assert text.rstrip(b'\x00') == b'by default'


def test_a_refusal_that_time_mends_leaves_the_connection_open() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send(observation())
        request = bench.engine.next_request()
        bench.engine.drop(Dropped(key=request.key, reason=Reason.EXPIRED, detail='too late'))
        assert robot.error() == 'EXPIRED: too late'
        robot.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        np.testing.assert_array_equal(robot.answer()['actions'], ROWS)


@pytest.mark.parametrize(
    ('sent', 'words'),
    [
        (observation(state=np.zeros(2)), 'REJECTED_STATE: state: expected float32 of shape (3,)'),
        (observation(images={}), 'MISSING_CAMERA: camera top: needed is images/top'),
        (observation(xinfer={'robot': 1}), 'REJECTED_STATE: xinfer has no key'),
        (observation(xinfer={'robot_id': 'a b'}), "REJECTED_NAME: robot id 'a b'"),
        (observation(xinfer={'leftover': np.zeros((4, 2))}), 'REJECTED_LEFTOVER: leftover'),
        (observation(prompt='x' * 401), 'REJECTED_INSTRUCTION: the instruction has 401 bytes'),
        (observation(pad=bytes(15_000)), 'unreadable: the observation has 0.0 MB; 0.01 MB are'),
        ([1, 2], 'unreadable: an observation is a dictionary; received list'),
    ],
)
def test_what_time_does_not_mend_is_told_and_the_connection_closed(
    sent: object, words: str
) -> None:
    """SE-02: and what is told holds neither path nor trace."""
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send(sent)
        text = robot.error()
        assert text.startswith(words)
        assert 'Traceback' not in text
        assert '.py' not in text
        with pytest.raises(ConnectionClosed) as closed:
            robot.connection.recv(timeout=WAIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


def test_text_and_far_too_large_messages_end_the_connection() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.connection.send('{"state": 1}')
        assert robot.error().startswith('unreadable: text was sent')
        robot = bench.robot()
        robot.connection.send(bytes(100_000))
        with pytest.raises(ConnectionClosed):  # the rest of it is not even read
            robot.connection.recv(timeout=WAIT_S)
        assert bench.robot().metadata['model'] == 'scripted'


def test_pings_are_answered_while_an_answer_takes_long() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send(observation())
        request = bench.engine.next_request()
        for _ in range(3):
            assert robot.connection.ping().wait(WAIT_S)
        bench.engine.finish(request, ROWS)
        np.testing.assert_array_equal(robot.answer()['actions'], ROWS)


def test_observations_that_come_too_fast_are_answered_in_turn() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        for number in range(5):
            robot.send(observation(state=np.full(3, number)))
        for number in range(5):
            request = bench.engine.next_request()
            assert bench.engine.life is not None
            assert bench.engine.life.slots.state[request.slot, 0] == number
            assert len(bench.engine.submitted()) == number + 1
            bench.engine.finish(request, ROWS + number)
            np.testing.assert_array_equal(robot.answer()['actions'], ROWS + number)


def test_a_robot_waits_for_its_metadata_until_there_is_a_model() -> None:
    with DoorBench(ready=False) as bench:
        connection = bench.connect()
        assert connection.ping().wait(WAIT_S)
        bench.engine.become_ready(EPOCH)
        assert read(connection)['model'] == 'scripted'


def test_when_the_engine_restarts_the_robot_is_told_and_goes_on_over_the_same_connection() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send(observation())
        bench.engine.next_request()
        bench.engine.die(EPOCH + 1)
        assert robot.error().startswith('ENGINE_RESTARTED')
        robot.send(observation())
        assert robot.error().startswith('NOT_READY')
        bench.engine.become_ready(EPOCH + 1)
        robot.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        assert robot.answer()['xinfer']['epoch'] == EPOCH + 1


def test_an_id_is_refused_while_its_robot_is_connected_and_free_when_it_has_gone() -> None:
    with DoorBench() as bench:
        first = bench.robot('?robot_id=arm')
        second = bench.robot('?robot_id=arm')
        assert second.metadata['xinfer']['robot_id'] == ''
        second.send(observation())
        assert second.error().startswith('DUPLICATE_ID: arm is registered over a websocket')
        first.connection.close()
        _until_gone(bench, second)
        second.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        np.testing.assert_array_equal(second.answer()['actions'], ROWS)


def _until_gone(bench: DoorBench, other: DoorRobot) -> None:
    """Wait until the door has noticed that a robot has left; another one keeps its loop going."""
    for _ in range(2000):
        if any(robot.seen_ns < 0 for robot in bench.front_end.robots()):
            return
        assert other.connection.ping().wait(WAIT_S)
    raise AssertionError('the door has not noticed that the robot left')


def test_a_robot_that_was_away_takes_its_id_again() -> None:
    with DoorBench() as bench:
        other = bench.robot('?robot_id=other')
        for _ in range(3):
            robot = bench.robot('?robot_id=arm')
            assert robot.metadata['xinfer']['robot_id'] == 'arm'
            robot.send(observation())
            bench.engine.finish(bench.engine.next_request(), ROWS)
            robot.answer()
            robot.connection.close()
            _until_gone(bench, other)
            bench.front_end.forget_silent()
        assert len(bench.front_end.robots()) == 1


def test_a_robot_whose_lease_is_over_goes_on_with_its_next_observation() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        bench.front_end.robots()[0].leave()  # as after a long silence
        assert bench.front_end.forget_silent()
        bench.router.sweep(bench.front_end.robots)
        robot.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        session = robot.answer()['xinfer']['session']
        assert (
            session == bench.front_end.robots()[0].session != robot.metadata['xinfer']['session']
        )


def test_a_robot_that_waits_is_asked_for_a_sign_of_life_and_keeps_its_lease() -> None:
    with DoorBench(lease_ns=600_000_000) as bench:
        robot = bench.robot()
        first_ns = bench.front_end.robots()[0].seen_ns
        for _ in range(100_000):
            if bench.front_end.robots()[0].seen_ns > first_ns + 700_000_000:
                break
            assert robot.connection.ping().wait(WAIT_S)
        else:
            raise AssertionError('nobody asked the robot for a sign of life')
        assert bench.front_end.forget_silent() == []


def test_who_waits_when_the_server_ends_is_told() -> None:
    with DoorBench() as bench:
        robot = bench.robot()
        robot.send(observation())
        bench.engine.next_request()
        bench.front_end.close()
        assert robot.error().startswith('SHUTDOWN')
        bench.door.close()
        with pytest.raises(ConnectionClosed):
            robot.connection.recv(timeout=WAIT_S)


def test_an_executed_step_that_is_not_told_is_what_the_robot_can_have_played() -> None:
    with DoorBench(spacing_ns=1_000_000_000) as bench:
        robot = bench.robot()
        for expected in (0, 0):
            robot.send(observation())
            bench.engine.finish(bench.engine.next_request(), ROWS)
            assert robot.answer()['xinfer']['start_step'] == expected
    with DoorBench(spacing_ns=1_000_000) as bench:
        robot = bench.robot()
        starts = []
        for _ in range(3):
            robot.send(observation())
            bench.engine.finish(bench.engine.next_request(), ROWS)
            starts.append(robot.answer()['xinfer']['start_step'])
            for _ in range(200):
                assert robot.connection.ping().wait(WAIT_S)
        assert starts == [0, 8, 16]  # never more than the chunk had
