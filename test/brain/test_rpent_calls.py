# SPDX-License-Identifier: Apache-2.0
"""Calls of RPent's VLA endpoint: what they wait for, how long, and what they are told then."""

import asyncio

import numpy as np
import pytest

from xinfer_ros.brain.gateway.patience import until_set
from xinfer_ros.brain.rpent import Prediction, Rows
from xinfer_ros.brain.rpent_calls import LOST, PASSING, PATIENCE_S, RpentCalls
from xinfer_ros.errors import Reason, Rejected

from .gateway.virtual_time import VirtualLoop, run_virtually

CALL = Prediction(instruction='pick', frames={}, state=np.zeros(3, np.float32), is_batched=False)
ROWS = np.zeros((2, 3), np.float32)


class Robot:
    """
    Answers as told.

    :param refusals: that come before rows
    :param seconds: that each answer takes
    """

    def __init__(self, *refusals: Reason, seconds: float = 0.0) -> None:
        self._refusals, self._seconds = list(refusals), seconds
        self.sessions = 1

    async def chunk(self, call: Prediction) -> Rows:
        """Return rows, or refuse."""
        if self._seconds:
            await until_set(asyncio.Event(), self._seconds)
        if self._refusals:
            raise Rejected(self._refusals.pop(0), 'so it is')
        return ROWS

    def forget(self) -> None:
        """Count a new session."""
        self.sessions += 1


def test_what_passes_is_waited_for_with_a_new_session_where_the_old_one_is_lost() -> None:
    robot = Robot(*PASSING)

    async def work(loop: VirtualLoop) -> None:
        assert await RpentCalls([robot]).predict(CALL) is ROWS

    run_virtually(work)
    assert robot.sessions == 1 + len(LOST)


def test_what_somebody_has_to_mend_is_told_at_once() -> None:
    async def work(loop: VirtualLoop) -> None:
        calls = RpentCalls([Robot(Reason.REJECTED_JOINTS)])
        began_s = loop.time()
        with pytest.raises(Rejected, match='REJECTED_JOINTS: so it is'):
            await calls.predict(CALL)
        assert loop.time() == began_s
        assert await calls.predict(CALL) is ROWS  # the robot is free again

    run_virtually(work)


def test_a_server_that_stays_away_is_named_before_rpent_gives_up() -> None:
    async def work(loop: VirtualLoop) -> None:
        began_s = loop.time()
        with pytest.raises(Rejected, match='NOT_READY: no chunk within 100 s: so it is'):
            await RpentCalls([Robot(*[Reason.NOT_READY] * 10_000)]).predict(CALL)
        assert loop.time() - began_s == pytest.approx(PATIENCE_S)

    run_virtually(work)


def test_waiting_for_a_free_robot_counts_too() -> None:
    async def work(loop: VirtualLoop) -> None:
        calls = RpentCalls([Robot(seconds=60.0)])
        began_s = loop.time()
        first, second, third = (asyncio.ensure_future(calls.predict(CALL)) for _ in range(3))
        assert await first is ROWS
        with pytest.raises(Rejected, match='within 100 s'):
            await second
        with pytest.raises(Rejected, match='each of the 1 calls that rpent_calls allows'):
            await third
        assert loop.time() - began_s == pytest.approx(PATIENCE_S)
        assert await calls.predict(CALL) is ROWS

    run_virtually(work)
