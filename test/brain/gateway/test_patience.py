# SPDX-License-Identifier: Apache-2.0
"""Waiting that is given up in the very moment in which what it waits for ends."""

import asyncio
import gc
from typing import Any

import pytest

from xinfer_ros.brain.gateway.patience import at_most

from .virtual_time import VirtualLoop, run_virtually


@pytest.mark.parametrize('rounds', range(6))
def test_a_failure_that_nobody_waits_for_any_more_is_not_logged(rounds: int) -> None:
    """An agent hangs up: writing to it fails, and its call is cancelled, in either order."""
    logged: list[dict[str, Any]] = []

    async def work(loop: VirtualLoop) -> None:
        loop.set_exception_handler(lambda _, context: logged.append(context))
        begins = asyncio.Event()

        async def fails() -> None:
            await begins.wait()
            raise ConnectionResetError

        waits = asyncio.ensure_future(at_most(fails(), None))
        await loop.lives(1.0)
        begins.set()
        await loop.goes_round(rounds)
        waits.cancel()
        (ended,) = await asyncio.gather(waits, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError | ConnectionResetError)
        del waits, ended
        gc.collect()

    run_virtually(work)
    assert logged == []


def test_work_that_takes_too_long_is_over_when_it_is_given_up() -> None:
    async def work(loop: VirtualLoop) -> None:
        over = asyncio.Event()

        async def lasts() -> None:
            try:
                await loop.lives(60.0)
            finally:
                over.set()

        with pytest.raises(asyncio.TimeoutError):
            await at_most(lasts(), 2.0)
        assert over.is_set()
        assert loop.time() == pytest.approx(1002.0)

    run_virtually(work)
