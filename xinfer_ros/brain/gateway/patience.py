# SPDX-License-Identifier: Apache-2.0
"""Waiting with an end; a cancellation always arrives, which ``asyncio.wait_for`` may swallow."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar('ResultT')


async def at_most(work: Coroutine[Any, Any, ResultT], seconds: float | None) -> ResultT:
    """
    Return the result of some work.

    :param seconds: that it may take; None: any time [s]
    :raises asyncio.TimeoutError: if it takes longer; then it has been cancelled
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    raise asyncio.TimeoutError


async def until_set(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until an event is set, at most so long [s]; None: as long as it takes."""
    task = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
