# SPDX-License-Identifier: Apache-2.0
"""CPU preparation and device work in turns: the ablation of their overlap."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.pending import Pending
from xinfer_ros.engine.preparation import AlternatingPreparation
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.predict.calibration import load_calibration

from .scripted_engine import Bench, observation


class Decoders(Executor):
    """Keeps what it is given until it is told to run it."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> 'Future[Any]':
        self._waiting.append(lambda: fn(*args, **kwargs))
        return Future()

    def run(self) -> int:
        """Run what is there; return how many."""
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()
        return len(waiting)


class Turns:
    """A preparation with what it has handed over."""

    def __init__(self) -> None:
        self.decoders = Decoders()
        self.handed: list[int] = []
        self.preparation = AlternatingPreparation(
            self.decoders,
            lambda pending: self.preparation.prepared(pending, good=pending.key not in self.bad),
            lambda pending: self.handed.append(pending.key),
        )
        self.bad: set[int] = set()
        bench = Bench()
        bench.engine.become_ready(1)
        robot = bench.robot('r')
        life = bench.engine.life
        assert isinstance(life, EngineLife)
        self._pending = Pending(
            key=0, robot=robot, observation=observation(robot, 1), life=life, slot=0, arrival_ns=0
        )

    def add(self, *keys: int) -> list[Pending]:
        """Take in requests."""
        added = [replace(self._pending, key=key) for key in keys]
        for pending in added:
            self.preparation.add(pending)
        return added


def test_requests_go_to_the_device_together_when_the_last_is_prepared() -> None:
    turns = Turns()
    turns.add(1, 2)
    assert turns.handed == []
    assert turns.decoders.run() == 2
    assert turns.handed == [1, 2]


def test_nothing_is_prepared_while_the_device_works() -> None:
    turns = Turns()
    first, second = turns.add(1, 2)
    turns.decoders.run()
    turns.add(3, 4)
    assert turns.decoders.run() == 0
    turns.preparation.ended(first)
    assert turns.decoders.run() == 0
    turns.preparation.ended(second)
    assert turns.decoders.run() == 2
    assert turns.handed == [1, 2, 3, 4]


def test_request_that_can_not_be_prepared_holds_nobody_back() -> None:
    turns = Turns()
    turns.bad = {2}
    (first, _) = turns.add(1, 2)
    turns.decoders.run()
    assert turns.handed == [1]
    turns.add(3)
    turns.preparation.ended(first)
    assert turns.decoders.run() == 1


def test_turn_goes_on_when_the_engine_is_gone() -> None:
    turns = Turns()
    turns.add(1)
    turns.decoders.run()
    turns.add(2)
    turns.preparation.reset()
    assert turns.decoders.run() == 1
    assert turns.handed == [1, 2]


def test_front_end_prepares_in_turns_if_it_is_told_to() -> None:
    calibration = load_calibration('paper')
    config = ServerConfig(overlap_preparation=False)
    settings = FrontEndSettings.from_config(config, 1, calibration)
    assert not settings.overlap_preparation
    bench = Bench(overlap_preparation=False)
    bench.engine.become_ready(1)
    robots = [bench.robot(name) for name in 'ab']
    for robot in robots:
        bench.ask(robot, 1)
    (first,) = bench.engine.submitted()  # the second came while the device works
    bench.engine.finish(first, 0.0)
    assert len(bench.engine.submitted()) == 2
    assert bench.reasons() == ['OK']


def test_engine_that_ends_while_requests_are_prepared_in_turns_leaves_nothing_behind() -> None:
    """The decoders end between two answers; the robots of the next engine are served."""
    decoders = Decoders()
    bench = Bench(num_slots=8, overlap_preparation=False, decoders=decoders)
    bench.engine.become_ready(1)
    robots = [bench.robot(name) for name in 'ab']
    for robot in robots:
        bench.ask(robot, 1)
    bench.while_answering = lambda answer: decoders.run()
    bench.engine.die(2)
    bench.while_answering = lambda answer: None
    bench.engine.become_ready(2)
    assert bench.reasons() == ['ENGINE_RESTARTED'] * 2
    for robot in robots:
        bench.ask(robot, 2)
    decoders.run()
    asked_again = [request for request in bench.engine.submitted() if request.key > 2]
    assert [request.robot for request in asked_again] == [0, 1]


def test_engine_that_ends_in_a_turn_lets_the_next_one_begin() -> None:
    bench = Bench(num_slots=8, overlap_preparation=False)
    bench.engine.become_ready(1)
    first, second = (bench.robot(name) for name in 'ab')
    bench.ask(first, 1)
    bench.ask(second, 1)  # waits for the device
    bench.engine.die(2)
    bench.engine.become_ready(2)
    bench.ask(first, 2)
    assert [request.robot for request in bench.engine.submitted()] == [0, 0]


def test_request_that_is_superseded_before_its_turn_keeps_no_slot() -> None:
    """SC-03 without overlap of CPU and device."""
    bench = Bench(num_slots=8, overlap_preparation=False)
    bench.engine.become_ready(1)
    robot = bench.robot('a')
    for number in range(1, 31):
        bench.ask(robot, number)
    assert bench.reasons() == ['SUPERSEDED'] * 29


@pytest.mark.parametrize('overlap', [True, False])
def test_request_that_was_answered_while_it_was_prepared_gives_its_slot_back(
    overlap: bool,
) -> None:
    decoders = Decoders()
    bench = Bench(num_slots=2, overlap_preparation=overlap, decoders=decoders)
    bench.engine.become_ready(1)
    robot = bench.robot('a')
    for number in range(1, 20, 2):
        bench.ask(robot, number)
        bench.ask(robot, number + 1)  # supersedes the one that is being prepared
        decoders.run()
        bench.engine.finish(bench.engine.submitted()[-1], 0.0)
    assert bench.reasons() == ['SUPERSEDED', 'OK'] * 10


def test_server_that_closes_while_a_request_comes_has_answered_it() -> None:
    class Closed(Decoders):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> 'Future[Any]':
            bench.front_end.close()
            raise RuntimeError('cannot schedule new futures after shutdown')

    bench = Bench(decoders=Closed())
    bench.engine.become_ready(1)
    bench.ask(bench.robot('a'), 1)
    assert bench.reasons() == ['SHUTDOWN']
