# SPDX-License-Identifier: Apache-2.0
"""The thread in which robots tick: fixed instants on the steady clock, apart from the network."""

import heapq
import logging
import threading
from collections.abc import Callable, Sequence

from xinfer_ros.core.clock import Clock

log = logging.getLogger(__name__)

Task = Callable[[int], int | None]


class ControlLoop:
    """
    Calls tasks at the instants that they ask for, all in one thread.

    A task gets the present time [ns] and returns when it wants to be called next, None for never.
    An exception in a task ends the loop: ``failure`` holds it, and the owner must end the process.

    :param clock: the steady clock
    :param tasks: called for the first time when the loop starts
    :param failed: called in the loop's thread when a task has raised
    """

    def __init__(self, clock: Clock, tasks: Sequence[Task], failed: Callable[[], None]) -> None:
        self._clock, self._failed = clock, failed
        self._due: list[tuple[int, int]] = [(0, index) for index in range(len(tasks))]
        self._tasks = list(tasks)
        self._closing = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name='control', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread after the task in execution."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._due and not self._closing.is_set():
                due_ns, index = self._due[0]
                wait_ns = due_ns - self._clock.now_ns()
                if wait_ns > 0 and self._closing.wait(wait_ns / 1e9):
                    return
                following = self._tasks[index](self._clock.now_ns())
                heapq.heappop(self._due)
                if following is not None:
                    heapq.heappush(self._due, (following, index))
        except Exception as error:
            log.exception('the control loop ends')
            self.failure = error
            self._failed()


class TickRate:
    """
    Evenly spaced instants; missed ones are skipped and counted, time is never stretched.

    :param spacing_ns: time between two ticks [ns]
    """

    def __init__(self, spacing_ns: int) -> None:
        self._spacing_ns = spacing_ns
        self._due_ns: int | None = None
        self.overruns = 0

    def instant(self, now_ns: int) -> int:
        """
        Return when the present tick was due [ns]; periods counted from it do not drift.

        After a stall it is at most one spacing ago, since what is asked now leaves now.
        """
        due_ns = now_ns if self._due_ns is None else self._due_ns
        return max(due_ns, now_ns - self._spacing_ns)

    def following(self, now_ns: int) -> int:
        """Return the next tick after the one of now [ns]."""
        due_ns = (now_ns if self._due_ns is None else self._due_ns) + self._spacing_ns
        late = (now_ns - due_ns) // self._spacing_ns + 1 if now_ns >= due_ns else 0
        self.overruns += late
        self._due_ns = due_ns + late * self._spacing_ns
        return self._due_ns
