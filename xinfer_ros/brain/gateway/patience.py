# SPDX-License-Identifier: Apache-2.0
"""Waiting with an end; a cancellation always arrives, which ``asyncio.wait_for`` may swallow."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

ResultT = TypeVar('ResultT')


@contextlib.asynccontextmanager
async def not_outlived(
    work: Coroutine[Any, Any, ResultT],
) -> AsyncIterator['asyncio.Future[ResultT]']:
    """Do some work beside; at the end it is over, cancelled if it was not done."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        elif not task.cancelled():
            task.exception()  # else it is logged as never seen, if nobody waits for it any more


async def at_most(work: Coroutine[Any, Any, ResultT], seconds: float | None) -> ResultT:
    """
    Return the result of some work.

    :param seconds: that it may take; None: any time [s]
    :raises asyncio.TimeoutError: if it takes longer; then it has been cancelled
    """
    async with not_outlived(work) as task:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    raise asyncio.TimeoutError


async def until_set(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until an event is set, at most so long [s]; None: as long as it takes."""
    async with not_outlived(event.wait()) as task:
        await asyncio.wait({task}, timeout=seconds)
