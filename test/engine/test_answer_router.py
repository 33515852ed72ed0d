# SPDX-License-Identifier: Apache-2.0
"""Answers find the door that their robot came in by."""

import pytest

from xinfer_ros.core.chunk import Answer
from xinfer_ros.engine.answer_router import AnswerRouter
from xinfer_ros.errors import Reason

from .scripted_engine import Bench


class Kept:
    """An outlet that keeps what it is told."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.closed = 0

    def publish(self, answer: Answer) -> None:
        """Keep an answer."""
        self.answers.append(answer)

    def close(self) -> None:
        """Count it."""
        self.closed += 1


@pytest.fixture
def bench() -> Bench:
    """Give a front end whose engine is ready."""
    bench = Bench()
    bench.engine.become_ready(7)
    return bench


def _answer(number: int) -> Answer:
    return Answer(session=1, episode=0, request_id=number, epoch=7, reason=Reason.EXPIRED)


def test_each_robot_gets_its_own_answers_and_who_has_gone_gets_none(bench: Bench) -> None:
    router, outlets = AnswerRouter(), [Kept(), Kept()]
    robots = [bench.robot('r0'), bench.robot('r1')]
    for robot, outlet in zip(robots, outlets, strict=True):
        router.join(robot, outlet)
    router(robots[1], _answer(1))
    router(robots[0], _answer(2))
    assert [[a.request_id for a in outlet.answers] for outlet in outlets] == [[2], [1]]
    assert router.knows(robots[0])
    router.leave(robots[0])
    router.leave(robots[0])
    router(robots[0], _answer(3))
    assert (len(outlets[0].answers), outlets[0].closed) == (1, 1)
    assert not router.knows(robots[0])
    assert router.outlets() == [outlets[1]]


def test_a_sweep_closes_the_way_to_whoever_is_no_longer_registered(bench: Bench) -> None:
    router, outlets = AnswerRouter(), [Kept(), Kept()]
    robots = [bench.robot('r0'), bench.robot('r1')]
    for robot, outlet in zip(robots, outlets, strict=True):
        router.join(robot, outlet)
    robots[0].leave()
    router.sweep(bench.front_end.robots)  # still registered until somebody looks
    assert router.knows(robots[0])
    assert bench.front_end.forget_silent() == [robots[0]]
    router.sweep(bench.front_end.robots)
    assert [outlet.closed for outlet in outlets] == [1, 0]


def test_who_joins_during_a_sweep_stays(bench: Bench) -> None:
    router, outlet = AnswerRouter(), Kept()
    robot = bench.robot('r0')

    def registered() -> list[object]:
        router.join(robot, outlet)
        return []

    router.sweep(registered)
    assert outlet.closed == 0
    assert router.knows(robot)
