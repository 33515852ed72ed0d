# SPDX-License-Identifier: Apache-2.0
"""Who notices that nothing comes any more: chunks, or the ticks of our own thread."""

import threading
from collections.abc import Callable

from xinfer_ros.core.clock import Clock

LOOKS = 2  # times that a stall is looked for within its limit
STALL_TICKS, STALL_NS = 3, 100_000_000


class ChunkWatchdog:
    """
    Trips when no chunk has been accepted for a while.

    Ages are counted from the arrival on the steady clock; a stamp never enters.

    :param timeout_ns: silence at which it trips, 0: never [ns]
    """

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._fed_ns: int | None = None

    def feed(self, now_ns: int) -> None:
        """Note that a chunk was accepted; from any thread."""
        self._fed_ns = now_ns

    def rest(self) -> None:
        """Wait for a first chunk again, as at the start of an episode."""
        self._fed_ns = None

    def trouble(self, now_ns: int) -> str:
        """Return what is wrong, nothing while chunks come or before the first."""
        if not self._timeout_ns or self._fed_ns is None:
            return ''
        silent_ns = now_ns - self._fed_ns
        if silent_ns < self._timeout_ns:
            return ''
        return f'chunk timeout: none came for {self._timeout_ns / 1e9:g} s'


def stall_limit_ns(spacing_ns: int) -> int:
    """Return how late a tick may be before its thread is taken for stalled [ns]."""
    return max(STALL_TICKS * spacing_ns, STALL_NS)


class StallGuard:
    """
    A thread that looks after the control thread.

    Where it is late itself, the host has halted or starves the whole process: the control thread
    gets as much time to go on by itself.

    :param clock: the steady clock
    :param lateness_ns: returns how late the control thread is at a time [ns]
    :param limit_ns: lateness that is a stall [ns]
    :param stalled: called in this thread with the lateness [ns], once a stall
    """

    def __init__(
        self,
        clock: Clock,
        lateness_ns: Callable[[int], int],
        limit_ns: int,
        stalled: Callable[[int], None],
    ) -> None:
        self._clock, self._lateness_ns, self._limit_ns = clock, lateness_ns, limit_ns
        self._stalled = stalled
        self._was_late = False
        self._look_ns: int | None = None  # when it wants to look again
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name='stall guard', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()

    def look(self) -> None:
        """Look once; what the thread does again and again."""
        now_ns = self._clock.now_ns()
        own_late_ns = 0 if self._look_ns is None else max(now_ns - self._look_ns, 0)
        self._look_ns = now_ns + self._limit_ns // LOOKS
        late_ns = self._lateness_ns(now_ns)
        is_late = late_ns - own_late_ns > self._limit_ns
        if is_late and not self._was_late:
            self._stalled(late_ns)
        self._was_late = is_late

    def _run(self) -> None:
        while not self._closing.wait(self._limit_ns / LOOKS / 1e9):
            self.look()
