# SPDX-License-Identifier: Apache-2.0
"""A thread that writes the files of a decision log and removes the oldest ones."""

import os
import queue
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.core.thread_name import start_thread
from xinfer_ros.sched.log_files import log_files, part_path


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailure:
    """
    Why a part could not be written any further.

    :param written_bytes: of it that are in its file
    """

    part: int
    why: str
    written_bytes: int


class LogDisk:
    """
    Writes what it is given, in its order; ``begin``, ``put`` and ``close`` return at once.

    :param folder: where it writes
    :param most_bytes: of all logs in the folder together; the oldest parts go
    :raises OSError: if there is no such folder
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self.run = max((file.run for file in log_files(folder)), default=0) + 1
        self._failure: WriteFailure | None = None
        self._work: queue.SimpleQueue[int | bytes | None] = queue.SimpleQueue()
        self._part = 0
        self._fd: int | None = None
        self._written_bytes = 0  # of the part
        self._put_bytes = self._done_bytes = 0  # each changed by one thread alone
        self._thread = start_thread('decision log', self._write)

    @property
    def failure(self) -> WriteFailure | None:
        """Return the newest failure, None if there was none."""
        return self._failure

    @property
    def backlog_bytes(self) -> int:
        """Return how far the disk is behind."""
        return self._put_bytes - self._done_bytes

    def begin(self, part: int) -> None:
        """Let what follows be in a new part."""
        self._work.put(part)

    def put(self, data: bytes) -> None:
        """Add bytes to the part."""
        self._put_bytes += len(data)
        self._work.put(data)

    def close(self, timeout_s: float) -> None:
        """End the thread once all is written, or leave it if it does not come to its end."""
        self._work.put(None)
        self._thread.join(timeout_s)

    def _write(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                if isinstance(work, int):
                    self._open(work)
                elif self._fd is not None:
                    self._append(self._fd, work)
            except OSError as error:
                self._shut()
                self._failure = WriteFailure(
                    part=self._part,
                    why=error.strerror or str(error),
                    written_bytes=self._written_bytes,
                )
            if isinstance(work, bytes):
                self._done_bytes += len(work)
        self._shut()

    def _open(self, part: int) -> None:
        self._shut()
        self._part, self._written_bytes = part, 0
        self._make_room()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(part_path(self._folder, self.run, part), flags, 0o644)

    def _append(self, fd: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            count = os.write(fd, left)
            self._written_bytes += count
            left = left[count:]

    def _shut(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _make_room(self) -> None:
        """Remove the oldest parts, so that one more has room."""
        files = log_files(self._folder)
        sizes = {file: file.path.stat().st_size for file in files}
        room = self._most_bytes - max(sizes.values(), default=0)
        while files and sum(sizes.values()) > room:
            oldest = files.pop(0)
            oldest.path.unlink()
            del sizes[oldest]
