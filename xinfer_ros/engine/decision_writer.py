# SPDX-License-Identifier: Apache-2.0
"""Writes the decision log of one engine life, beside the engine's own work."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from xinfer_ros.engine.log_disk import LogDisk, WriteFailure
from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.decision_log import BlockKind, LogHeader, block, names_block, part_head

PARTS = 8  # at least, of a log of the largest size
MAX_PART_BYTES = 16_000_000
MAX_BACKLOG_BYTES = 32_000_000  # a disk that is further behind has failed
PAUSE_DRAINS = 40  # after a failure: ten seconds of beats
CLOSE_S = 1.0

log = logging.getLogger(__name__)


class JournalledCore(Protocol):
    """The part of a scheduler core that the log needs."""

    def keep_journal(self, keep: bool) -> None:
        """Choose whether calls are taken down."""
        ...

    def take_journal(self) -> bytes:
        """Return what was taken down since the last call."""
        ...

    def snapshot(self) -> bytes:
        """Return the state; what is taken down from here on can follow it."""
        ...


class Disk(Protocol):
    """Where parts of a log go; see ``LogDisk``."""

    @property
    def failure(self) -> WriteFailure | None:
        """Return the newest failure."""
        ...

    @property
    def backlog_bytes(self) -> int:
        """Return how far the disk is behind."""
        ...

    def begin(self, part: int) -> None:
        """Let what follows be in a new part."""
        ...

    def put(self, data: bytes) -> None:
        """Add bytes to the part."""
        ...

    def close(self, timeout_s: float) -> None:
        """Write what is left."""
        ...


def check_log_folder(folder: Path) -> None:
    """
    Refuse a place where no log could be, before the engine starts.

    :raises ConfigError: if there is a file, or no folder to make it in
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f'decision_log is {folder}, which is no folder; name a folder')
    if not folder.absolute().parent.is_dir():
        raise ConfigError(
            f'decision_log is {folder}; there is no folder {folder.parent}: make it first'
        )


class DecisionWriter:
    """
    Takes over what a core takes down, and has it written in a thread of its own.

    Its methods are called one at a time; ``named`` and ``drain`` return at once. Each part is
    complete in itself. What cannot be written is counted and told, and after a pause a new part
    begins.

    :param core: the scheduler's; it is told to take down its calls
    :param header: what the log is a log of
    :param disk: where it goes
    :param part_bytes: size from which on a part is closed
    """

    def __init__(
        self, core: JournalledCore, header: LogHeader, disk: Disk, part_bytes: int
    ) -> None:
        self._core, self._header, self._disk = core, header, disk
        self._part_bytes = part_bytes
        self._names = dict(header.names)
        self._put_bytes = 0  # of this part
        self._lost_bytes = 0
        self._pause = 0  # drains until it is tried again
        core.keep_journal(True)
        self._part = 0
        self._begin_part()

    @classmethod
    def into(
        cls, folder: Path, core: JournalledCore, header: LogHeader, most_bytes: int
    ) -> 'DecisionWriter':
        """
        Return one that writes a new run into a folder, which is made if need be.

        :param most_bytes: of all logs in the folder together; the oldest parts go
        :raises ConfigError: if it cannot be a folder
        """
        try:
            folder.mkdir(exist_ok=True)
            disk = LogDisk(folder, most_bytes)
        except OSError as error:
            raise ConfigError(f'decision_log {folder}: {error.strerror}') from error
        log.info('decision log: run %d in %s', disk.run, folder)
        return cls(core, header, disk, min(most_bytes // PARTS, MAX_PART_BYTES))

    def named(self, robot: int, name: str) -> None:
        """Take in who a robot is."""
        if self._names.get(robot) == name:
            return
        self._names[robot] = name
        if not self._pause:
            self._put(names_block({robot: name}))

    def drain(self) -> None:
        """Take over what was taken down since the last call."""
        piece = self._core.take_journal()
        if self._pause:
            self._pause -= 1
            self._lost_bytes += len(piece)
            if not self._pause:
                self._begin_part()
            return
        failed = self._failure()
        if failed:
            self._lost_bytes += len(piece)
            self._pause = PAUSE_DRAINS
            log.error('decision log: %s; %d bytes are lost so far', failed, self._lost_bytes)
            return
        if piece:
            self._put(block(BlockKind.CALLS, piece))
        if self._put_bytes >= self._part_bytes:
            self._put(block(BlockKind.END, b''))
            self._begin_part()

    def close(self) -> None:
        """Have the rest written and end the thread."""
        self.drain()
        if not self._pause:
            self._put(block(BlockKind.END, b''))
        self._disk.close(CLOSE_S)

    def _failure(self) -> str:
        """Return why this part goes no further, empty if it does."""
        failure = self._disk.failure
        if failure is not None and failure.part == self._part:
            self._lost_bytes += self._put_bytes - failure.written_bytes
            return f'part {self._part} cannot be written: {failure.why}'
        if self._disk.backlog_bytes > MAX_BACKLOG_BYTES:
            return f'the disk is {self._disk.backlog_bytes} bytes behind'
        return ''

    def _begin_part(self) -> None:
        self._part += 1
        self._put_bytes = 0
        header = replace(
            self._header, part=self._part, lost_bytes=self._lost_bytes, names=dict(self._names)
        )
        self._disk.begin(self._part)
        self._put(part_head(header, self._core.snapshot()))

    def _put(self, data: bytes) -> None:
        self._put_bytes += len(data)
        self._disk.put(data)
