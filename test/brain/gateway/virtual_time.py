# SPDX-License-Identifier: Apache-2.0
"""An event loop whose time jumps to the next timer as soon as nothing else is to be done."""

import asyncio
import selectors
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

ResultT = TypeVar('ResultT')
GRACE_S = 0.002  # real time for bytes on their way between two sockets of this process


class _JumpingSelector(selectors.DefaultSelector):
    """Does not wait for the time that it is given: it lets it pass."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: Callable[[float], None] = lambda seconds: None

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            ready = super().select(GRACE_S if timeout is not None else 10.0)
            if not ready and timeout is None:
                raise RuntimeError('everybody waits, and no timer runs: this would last for ever')
            if not ready and timeout is not None:
                self.passed(timeout)
        return ready


@types.coroutine
def _one_round() -> Generator[None, None, None]:
    yield


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with real sockets and virtual time; also a ``Clock``."""

    def __init__(self) -> None:
        self._now_s = 1000.0
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.passed = self._pass

    def _pass(self, seconds: float) -> None:
        self._now_s += seconds

    def time(self) -> float:
        """Return the virtual time [s]."""
        return self._now_s

    def now_ns(self) -> int:
        """Return the virtual time [ns]."""
        return round(self._now_s * 1e9)

    async def goes_round(self, times: int) -> None:
        """Let everything that is ready go on by one step, so many times; no time passes."""
        for _ in range(times):
            await _one_round()

    async def lives(self, seconds: float) -> None:
        """Let everything go on for a while of virtual time [s]."""
        over: asyncio.Future[None] = self.create_future()
        self.call_later(seconds, over.set_result, None)
        await over


def run_virtually(work: Callable[[VirtualLoop], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run something to its end in virtual time; it gets the loop, which is its clock."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work(loop))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
