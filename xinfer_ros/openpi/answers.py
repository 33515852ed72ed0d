# SPDX-License-Identifier: Apache-2.0
"""The way back to one registered robot: from any thread into the loop of its connection."""

import asyncio
import contextlib

from xinfer_ros.core.chunk import Answer


class Answers:
    """
    An outlet; made, and waited at, in a loop.

    A robot that registers anew gets another one, so that nothing old is mistaken for new.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[Answer | None] = asyncio.Queue()

    def publish(self, answer: Answer) -> None:
        """Bring an answer into the loop."""
        self._put(answer)

    def close(self) -> None:
        """Tell who waits that the robot is no longer registered."""
        self._put(None)

    def _put(self, answer: Answer | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._waiting.put_nowait, answer)

    async def to(self, request_id: int) -> Answer | None:
        """Return the answer to a request, None if the robot is no longer registered."""
        while True:
            answer = await self._waiting.get()
            if answer is None or answer.request_id == request_id:
                return answer
