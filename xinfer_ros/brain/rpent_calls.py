# SPDX-License-Identifier: Apache-2.0
"""Shares the robots of RPent's VLA endpoint among its calls, which wait for what passes."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from xinfer_ros.brain.gateway.patience import at_most
from xinfer_ros.brain.rpent import Prediction, Rows
from xinfer_ros.errors import Reason, Rejected

PATIENCE_S = 100.0  # RPent gives a call up after 120 s
PAUSE_S = 0.2
# what passes by itself, or with a new session
PASSING = (
    Reason.NOT_READY, Reason.ENGINE_RESTARTED, Reason.UNKNOWN_SESSION, Reason.EXPIRED, Reason.HUNG,
    Reason.REJECTED_NO_SLOT, Reason.REJECTED_CAPACITY,
    Reason.DUPLICATE_ID,  # until the lease of a brain node that was killed is over
)  # fmt: skip
LOST = (Reason.UNKNOWN_SESSION, Reason.EXPIRED, Reason.ENGINE_RESTARTED)

log = logging.getLogger(__name__)


class VlaRobot(Protocol):
    """A robot of the fleet that RPent stands behind."""

    async def chunk(self, call: Prediction) -> Rows:
        """
        Return what the fleet's server answers, asking it for a session first if there is none.

        :raises Rejected: as the server says; EXPIRED if it says nothing
        """

    def forget(self) -> None:
        """Ask for a session anew before the next call."""


class RpentCalls:
    """
    Answers calls at once by different robots; a call waits while all are taken.

    :param robots: at least one
    """

    def __init__(self, robots: Sequence[VlaRobot]) -> None:
        self._num_robots = len(robots)
        self._free: asyncio.Queue[VlaRobot] = asyncio.Queue()
        for robot in robots:
            self._free.put_nowait(robot)

    async def predict(self, call: Prediction) -> Rows:
        """
        Return a chunk, whatever restarts meanwhile.

        :raises Rejected: what does not pass at once; else after ``PATIENCE_S`` what came last
        """
        busy = f'each of the {self._num_robots} calls that rpent_calls allows is taken'
        refusals = deque([Rejected(Reason.EXPIRED, busy)], maxlen=1)
        try:
            return await at_most(self._by_any(call, refusals), PATIENCE_S)
        except asyncio.TimeoutError:
            text = f'no chunk within {PATIENCE_S:g} s: {refusals[0].detail}'
            raise Rejected(refusals[0].reason, text) from None

    async def _by_any(self, call: Prediction, refusals: deque[Rejected]) -> Rows:
        robot = await self._free.get()
        try:
            return await self._by_one(robot, call, refusals)
        finally:
            self._free.put_nowait(robot)

    async def _by_one(self, robot: VlaRobot, call: Prediction, refusals: deque[Rejected]) -> Rows:
        while True:
            try:
                return await robot.chunk(call)
            except Rejected as refusal:
                if refusal.reason not in PASSING:
                    raise
                if refusal.reason is not refusals[0].reason:
                    log.warning('a call of RPent waits: %s', refusal)
                refusals.append(refusal)
                if refusal.reason in LOST:
                    robot.forget()
            await asyncio.sleep(PAUSE_S)
