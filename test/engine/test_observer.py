# SPDX-License-Identifier: Apache-2.0
"""Whoever observes the front end hears of everything, once."""

import numpy as np
import pytest

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.observer import NoObserver
from xinfer_ros.engine.records import Dropped
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.seen import Timeline, Watch
from xinfer_ros.errors import Reason, Rejected

from .scripted_engine import Bench, observation

ROWS = np.zeros((8, 3), np.float32)


class Listener(NoObserver):
    """Keeps what it hears of robots, requests and answers."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.told: list[tuple[int, object]] = []

    def joined(self, robot: Robot, contract: ModelContract, now_ns: int) -> None:
        """Keep the robot."""
        self.heard.append(f'joined {robot.registration.robot_id}')

    def left(self, robot: Robot, now_ns: int) -> None:
        """Keep the robot."""
        self.heard.append(f'left {robot.registration.robot_id}')

    def not_registered(self, robot_id: str, refusal: Rejected, now_ns: int) -> None:
        """Keep the reason."""
        self.heard.append(f'{refusal.reason.name} {robot_id}')

    def arrived(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
        """Keep the request."""
        self.heard.append(f'asked {observation.request_id}')

    def answered(
        self, robot: Robot, observation: Observation, answer: Answer, arrival_ns: int
    ) -> None:
        """Keep the answer."""
        self.heard.append(f'{answer.reason.name} {observation.request_id}')

    def engine_told(self, epoch: int, record: object, now_ns: int) -> None:
        """Keep the record."""
        self.told.append((epoch, record))

    def engine_ended(self, now_ns: int) -> None:
        """Keep that it has."""
        self.heard.append('engine ended')


@pytest.fixture
def listener() -> Listener:
    """Give a listener."""
    return Listener()


@pytest.fixture
def bench(listener: Listener) -> Bench:
    """Give a front end that is listened to and whose engine is ready."""
    bench = Bench(observer=listener)
    bench.engine.become_ready(7)
    return bench


def test_every_request_is_heard_of_once_and_so_is_its_answer(
    bench: Bench, listener: Listener
) -> None:
    robot = bench.robot('r0')
    listener.heard.clear()
    bench.ask(robot, 1)
    bench.engine.finish(bench.engine.submitted()[-1], ROWS)
    bench.ask(robot, 2)
    bench.ask(robot, 3, budget_ns=1)
    bench.ask(robot, 4)
    bench.engine.finish(bench.engine.submitted()[-1], np.full((8, 3), np.nan, np.float32))
    bench.ask(robot, 5)
    key = bench.engine.submitted()[-1].key
    bench.engine.drop(Dropped(key=key, reason=Reason.EXPIRED, detail=''))
    bench.ask(robot, 6)
    bench.engine.die(8)
    bench.engine.become_ready(8)
    bench.ask(robot, 7)
    bench.front_end.close()
    answered = [
        'OK 1', 'REJECTED_BUDGET 3', 'SUPERSEDED 2', 'REJECTED_ROWS 4', 'EXPIRED 5',
        'ENGINE_RESTARTED 6', 'SHUTDOWN 7',
    ]  # fmt: skip
    assert listener.heard.count('engine ended') == 1  # the second was ended by the server
    listener.heard.remove('engine ended')
    assert sorted(listener.heard) == sorted([*answered, *(f'asked {n}' for n in range(1, 8))])
    for number in range(1, 8):
        words = [words for words in listener.heard if words.endswith(f' {number}')]
        assert words[0] == f'asked {number}'  # and its answer after that
    assert len(bench.answers) == len(answered)


def test_request_is_heard_of_before_another_thread_can_answer_it() -> None:
    """One that an engine's end had answered first would be shown as waiting for ever."""
    used: list[int] = []

    class Early(NoObserver):
        def arrived(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
            used.append(server.front_end.status().slots_used)

    server = Bench(observer=Early())
    server.engine.become_ready(7)
    robot = server.robot('r0')
    server.ask(robot, 1)
    server.front_end.refuse(robot, observation(robot, 2), Rejected(Reason.UNSTAMPED, ''), 0)
    assert used == [0, 1]


def test_robots_that_come_and_go_are_heard_of(bench: Bench, listener: Listener) -> None:
    bench.robot('r0')
    with pytest.raises(Rejected):
        bench.robot('r0', instance=2)
    bench.clock.advance(6 * 10**9)
    bench.robot('r0', instance=2)
    bench.clock.advance(6 * 10**9)
    bench.front_end.forget_silent()
    assert listener.heard == [
        'joined r0', 'DUPLICATE_ID r0', 'left r0', 'joined r0', 'left r0'
    ]  # fmt: skip


def test_an_engine_is_watched_only_while_somebody_does(bench: Bench, listener: Listener) -> None:
    """The next one is told as well, if it comes in the meantime."""

    def watches() -> list[bool]:
        return [record.on for record in bench.engine.sent if isinstance(record, Watch)]

    assert watches() == []
    bench.front_end.watch(True)
    bench.front_end.watch(True)
    assert watches() == [True]
    bench.engine.die(8)
    bench.engine.become_ready(8)
    assert watches() == [True, True]
    bench.front_end.watch(False)
    assert watches() == [True, True, False]
    bench.engine.die(9)
    bench.engine.become_ready(9)
    assert watches() == [True, True, False]


def test_what_an_engine_tells_comes_with_its_epoch(bench: Bench, listener: Listener) -> None:
    seen = Timeline(from_ns=0, to_ns=1, units=(), waiting=())
    bench.engine.tell(seen)
    assert listener.told == [(7, seen)]
