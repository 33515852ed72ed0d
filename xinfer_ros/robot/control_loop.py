# SPDX-License-Identifier: Apache-2.0
"""The thread in which robots tick: fixed instants, apart from the network."""

import heapq
import logging
import threading
from collections.abc import Callable, Sequence

from xinfer_ros.core.clock import Clock

log = logging.getLogger(__name__)

Task = Callable[[int], int | None]
CLOSE_S = 2.0


class ControlLoop:
    """
    Calls tasks at the instants that they ask for, all in one thread.

    A task gets the present time [ns] and returns when it wants to be called next, None for never;
    ``wake`` calls all of them sooner. An exception in a task ends the loop: ``failure`` holds it,
    and the owner must end the process.

    :param clock: the steady clock
    :param tasks: called for the first time when the loop starts
    :param failed: called in the loop's thread when a task has raised
    """

    def __init__(self, clock: Clock, tasks: Sequence[Task], failed: Callable[[], None]) -> None:
        self._clock, self._failed = clock, failed
        self._tasks = list(tasks)
        self._due: list[tuple[int, int]] = []
        self._closing = False
        self._is_woken = False
        self._wakeup = threading.Event()
        self._next_ns: int | None = None
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name='control', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Call every task now, as when the clock that it follows has moved; from any thread."""
        self._is_woken = True
        self._wakeup.set()

    def close(self) -> bool:
        """End the thread after the task in execution; return whether it has ended in time."""
        self._closing = True
        self._wakeup.set()
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive()

    def lateness_ns(self, now_ns: int) -> int:
        """Return for how long a task has been due that has not ended yet [ns]; any thread."""
        due_ns = self._next_ns
        return max(now_ns - due_ns, 0) if due_ns is not None else 0

    def _run(self) -> None:
        try:
            now_ns = self._clock.now_ns()
            self._due = [(now_ns, index) for index in range(len(self._tasks))]
            while self._due and not self._closing:
                self._step()
        except Exception as error:
            log.exception('the control loop ends')
            self.failure = error
            self._failed()
        finally:
            self._next_ns = None

    def _step(self) -> None:
        """Wait for the task that is due first and call it, or be woken."""
        if self._is_woken:
            self._is_woken = False
            now_ns = self._clock.now_ns()
            self._due = [(now_ns, index) for index in range(len(self._tasks))]
        due_ns, index = self._due[0]
        self._next_ns = due_ns
        wait_ns = due_ns - self._clock.now_ns()
        if wait_ns > 0 and self._wakeup.wait(wait_ns / 1e9):
            self._wakeup.clear()
            return
        following = self._tasks[index](self._clock.now_ns())
        heapq.heappop(self._due)
        if following is not None:
            heapq.heappush(self._due, (following, index))


class TickRate:
    """
    Evenly spaced instants of any clock; missed ones are counted, time is never stretched.

    The grid is kept through late ticks and stalls; a clock that jumps back starts a new one.

    :param spacing_ns: time between two ticks [ns]
    """

    def __init__(self, spacing_ns: int) -> None:
        self._spacing_ns = spacing_ns
        self._due_ns: int | None = None
        self.instant_ns = 0
        self.overruns = 0

    @property
    def due_ns(self) -> int:
        """Return when the next tick is due [ns], 0 before the first."""
        return self._due_ns if self._due_ns is not None else 0

    def rest(self) -> None:
        """Begin a new grid with the next tick; none is missed until then."""
        self._due_ns = None

    def is_due(self, now_ns: int) -> bool:
        """Return whether a tick is due, or the clock has jumped back behind the last one."""
        if self._due_ns is None:
            return True
        return now_ns >= self._due_ns or self._due_ns - now_ns > self._spacing_ns

    def begin(self, now_ns: int) -> int:
        """
        Begin the tick of now; ``instant_ns`` is when it was due, ``due_ns`` the next one.

        :returns: ticks that were missed since the last one
        """
        if self._due_ns is None or self._due_ns - now_ns > self._spacing_ns:
            self._due_ns = now_ns
        missed = max(now_ns - self._due_ns, 0) // self._spacing_ns
        self.overruns += missed
        self.instant_ns = self._due_ns + missed * self._spacing_ns
        self._due_ns = self.instant_ns + self._spacing_ns
        return missed
