# SPDX-License-Identifier: Apache-2.0
"""The processes of a load generator: started, let go at one instant, and waited for."""

import os
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from xinfer_ros.core.clock import Clock
from xinfer_ros.fleet.bench_system import BenchFailedError
from xinfer_ros.robot.load_signals import DONE, READY, START, Progress, progress_of, say

CLOSE_S = 3.0
_LAST_WORDS = 6


class LoadGroup:
    """
    Processes that play plans; used as a context, at whose end they are gone.

    :param commands: a command line each
    :param environment: variables beside those of this process
    :param clock: the steady clock
    :param output: takes every other line that they say
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        environment: Mapping[str, str],
        clock: Clock,
        output: Callable[[str], None],
    ) -> None:
        self._clock, self._output = clock, output
        self._lines: queue.SimpleQueue[tuple[int, str | None]] = queue.SimpleQueue()
        self._words: list[list[str]] = [[] for _ in commands]
        self._is_ready, self._is_done = ([False] * len(commands) for _ in range(2))
        self._progress = [Progress(sent=0, answered=0) for _ in commands]
        self._processes = [
            subprocess.Popen(
                list(line),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors='replace',
                env={**os.environ, 'PYTHONUNBUFFERED': '1', **environment},
                start_new_session=True,
            )
            for line in commands
        ]
        for place, process in enumerate(self._processes):
            assert process.stdout is not None
            threading.Thread(target=self._pump, args=(place, process.stdout), daemon=True).start()

    def __enter__(self) -> 'LoadGroup':
        """Do nothing more."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the processes that live."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(CLOSE_S)
            if process.stdin is not None:
                process.stdin.close()

    def _pump(self, place: int, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put((place, line.rstrip()))
        self._lines.put((place, None))

    @property
    def progress(self) -> Progress:
        """Return how far all of them are."""
        return Progress(
            sent=sum(each.sent for each in self._progress),
            answered=sum(each.answered for each in self._progress),
        )

    def wait_ready(self, timeout_s: float, tick: Callable[[], None]) -> None:
        """
        Wait until every process could start.

        :param tick: called now and then
        :raises BenchFailedError: if one ends before, or is not ready in time
        """
        self._wait(self._is_ready, timeout_s, tick, 'is not ready')

    def start(self, start_ns: int) -> None:
        """Let all of them begin at one instant of the monotonic clock [ns]."""
        for process in self._processes:
            assert process.stdin is not None
            say(process.stdin, START, start_ns)

    def wait_done(self, timeout_s: float, tick: Callable[[], None]) -> None:
        """
        Wait until every process has saved its log.

        :raises BenchFailedError: if one ends before, or not in time
        """
        self._wait(self._is_done, timeout_s, tick, 'does not end')

    def wait_until(self, at_ns: int, tick: Callable[[], None]) -> None:
        """
        Let time pass while they run.

        :raises BenchFailedError: if one ends
        """
        while (left_ns := at_ns - self._clock.now_ns()) > 0:
            self._take(min(left_ns / 1e9, 0.25))
            tick()

    def _wait(
        self, marks: list[bool], timeout_s: float, tick: Callable[[], None], what: str
    ) -> None:
        end_ns = self._clock.now_ns() + round(timeout_s * 1e9)
        while not all(marks):
            if self._clock.now_ns() > end_ns:
                place = marks.index(False)
                raise BenchFailedError(
                    f'process {place + 1} of {len(marks)} of the load generator {what} after '
                    f'{timeout_s:g} s{self._last_words(place)}'
                )
            self._take(0.1)
            tick()

    def _take(self, timeout_s: float) -> None:
        """Take in one line, or let the time pass."""
        try:
            place, line = self._lines.get(timeout=max(timeout_s, 0.0))
        except queue.Empty:
            return
        if line is None:
            if not self._is_done[place]:
                code = self._processes[place].wait(CLOSE_S)
                raise BenchFailedError(
                    f'process {place + 1} of {len(self._processes)} of the load generator ended '
                    f'with exit code {code}{self._last_words(place)}'
                )
        elif line == READY:
            self._is_ready[place] = True
        elif line == DONE:
            self._is_done[place] = True
        elif (progress := progress_of(line)) is not None:
            self._progress[place] = progress
        else:
            self._words[place] = [*self._words[place][-_LAST_WORDS:], line]
            self._output(f'[load-{place}] {line}')

    def _last_words(self, place: int) -> str:
        words = self._words[place]
        return f': {words[-1]}' if words else ''
