# SPDX-License-Identifier: Apache-2.0
"""The threads that decode pictures."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from xinfer_ros.core.thread_name import start_thread

DECODE = 'decode'  # name of the threads, by which their time is told from that of the others

log = logging.getLogger(__name__)


class Decoders(Protocol):
    """Does work beside the thread that receives; any ``concurrent.futures.Executor`` can."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> object:
        """Do some work later; RuntimeError once it is shut down."""
        ...

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work."""
        ...


class DecodeThreads:
    """
    Threads that take whatever comes next.

    Nobody waits for a result of theirs, so there are no futures, which would cost as much as the
    checks of an observation.

    :param count: how many
    """

    def __init__(self, count: int) -> None:
        self._work = queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None]()
        self._lock = threading.Lock()
        self._is_closed = self._drops = False
        self._threads = [start_thread(DECODE, self._run) for _ in range(count)]

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> None:
        """
        Do some work later, in the order of the calls.

        :raises RuntimeError: once it is shut down
        """
        with self._lock:
            if self._is_closed:
                raise RuntimeError('the decoders are shut down')
            self._work.put((work, arguments))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """
        Take no more work.

        :param wait: return when the threads have ended
        :param cancel_futures: drop what has not begun
        """
        with self._lock:
            self._is_closed, self._drops = True, cancel_futures
        for _ in self._threads:
            self._work.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, arguments = item
            if self._drops:
                continue
            try:
                work(*arguments)
            except Exception:
                log.exception('a decoder thread goes on after an error')
