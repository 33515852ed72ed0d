# SPDX-License-Identifier: Apache-2.0
"""The files of decision logs: which run and part each is, and the log that a name stands for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.decision_log import LogHeader, LogPart, read_part

_NAME = re.compile(r'decisions-(\d{4,})-(\d{6,})\.xlog')


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LogFile:
    """
    A part of a run, by the name of its file.

    :param run: number of the engine life in its folder, from 1
    :param part: number of the part, from 1
    """

    run: int
    part: int
    path: Path


def part_path(folder: Path, run: int, part: int) -> Path:
    """Return where a part is."""
    return folder / f'decisions-{run:04}-{part:06}.xlog'


def log_files(folder: Path) -> list[LogFile]:
    """Return the parts of all runs in a folder, the oldest first; raises OSError."""
    return sorted(
        LogFile(run=int(found[1]), part=int(found[2]), path=path)
        for path in folder.iterdir()
        if (found := _NAME.fullmatch(path.name))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLog:
    """
    The parts of one run, in their order.

    :param run: its number, None of a single file
    """

    parts: tuple[LogPart, ...]
    run: int | None = None

    @property
    def header(self) -> LogHeader:
        """Return the header of the first part."""
        return self.parts[0].header

    @property
    def names(self) -> dict[int, str]:
        """Return the names of robots by their number, as told last."""
        return {number: name for part in self.parts for number, name in part.names.items()}

    @property
    def begins_ns(self) -> int:
        """Return the time of the first call, 0 if there is none [ns]."""
        calls = chain.from_iterable(part.calls() for part in self.parts)
        return next((call.now_ns for call in calls), 0)

    def unbroken(self) -> tuple[LogPart, ...]:
        """Return the parts after the last place at which something is missing."""
        kept = [self.parts[0]]
        for part in self.parts[1:]:
            if not part.header.follows(kept[-1].header):
                kept.clear()
            kept.append(part)
        return tuple(kept)

    def remarks(self) -> list[str]:
        """Return what is not in it, in sentences."""
        remarks = []
        if self.header.part > 1:
            remarks.append(f'the parts before {self.header.part} are not there any more')
        for before, after in pairwise(self.parts):
            if lost := after.header.lost_bytes - before.header.lost_bytes:
                remarks.append(
                    f'before part {after.header.part}, {lost} bytes of calls could not be written'
                )
            elif after.header.part != before.header.part + 1:
                remarks.append(
                    f'between part {before.header.part} and {after.header.part} some are missing'
                )
        for part in self.parts:
            if part.torn_bytes:
                remarks.append(
                    f'part {part.header.part} ends with {part.torn_bytes} bytes of a torn block, '
                    'which is left out'
                )
        if not self.parts[-1].is_closed:
            remarks.append('it was not closed in order: its engine was killed, or still runs')
        return remarks


def load_log(path: Path, run: int | None = None) -> DecisionLog:
    """
    Return a log: of a folder its newest run, or the one that is asked for; of a file that part.

    :raises ConfigError: if there is none
    """
    try:
        if not path.is_dir():
            return DecisionLog(parts=(_read(path),))
        files = log_files(path)
        if not files:
            raise ConfigError(
                f'folder {path} holds no decision log; a server writes one with decision_log: '
                f'{path}'
            )
        runs = sorted({file.run for file in files})
        wanted = runs[-1] if run is None else run
        if wanted not in runs:
            raise ConfigError(f'{path} holds no run {wanted}; there are {_ranges(runs)}')
        parts = tuple(_read(file.path) for file in files if file.run == wanted)
        return DecisionLog(parts=parts, run=wanted)
    except OSError as error:
        raise ConfigError(f'decision log {path} cannot be read: {error.strerror}') from error


def _read(path: Path) -> LogPart:
    try:
        return read_part(path.read_bytes())
    except ConfigError as error:
        raise ConfigError(f'{path}: {error}') from error


def _ranges(runs: Sequence[int]) -> str:
    return str(runs[0]) if len(runs) == 1 else f'{runs[0]} to {runs[-1]}'
