# SPDX-License-Identifier: Apache-2.0
"""What an engine did: every start and end of a unit, kept in bounded memory, written to a file."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.request import Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration, calibration_text, parse_calibration

FORMAT = 1
CAPACITY = 2_000_000  # transitions: about an hour of 100 requests a second, 130 MB
SUFFIX = '.npz'
Rows = npt.NDArray[np.int64]


class Change(IntEnum):
    """What a transition tells of its unit."""

    FAILED = -1
    ENDED = 0
    STARTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """
    What a run was a run of; texts for a person.

    :param policy: name of the scheduling policy
    :param model: name of the model
    :param date: day of the run, as 2026-01-31
    """

    policy: str
    model: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """
    A run as it was written down.

    :param transitions: rows time [ns], unit, stage, size of the batch, ``Change``, by time; shape
        ``(m, 5)`` int64
    :param members: rows unit, request, robot; shape ``(k, 3)`` int64
    :param from_ns: since when nothing is missing: units that started before were running then [ns]
    :param calibration: what the scheduler believed of the device
    """

    transitions: Rows
    members: Rows
    from_ns: int
    calibration: Calibration
    facts: RunFacts

    def check_sizes(self, calibration: Calibration) -> None:
        """
        Refuse a calibration that does not know the batches of the run.

        :raises ConfigError: with the stage and the sizes
        """
        for stage in Stage:
            sizes = self.transitions[self.transitions[:, 2] == stage, 3]
            known = len(calibration.batch_work[stage])
            if sizes.max(initial=0) > known:
                raise ConfigError(
                    f'the run has batches of {sizes.max()} in {stage.name}, calibration '
                    f'{calibration.name} knows up to {known}'
                )


class _Ring:
    """The newest rows of numbers."""

    def __init__(self, capacity: int, width: int) -> None:
        self._rows: Rows = np.zeros((capacity, width), dtype=np.int64)  # paged in as it fills
        self._count = 0

    def append(self, row: Sequence[int]) -> list[int] | None:
        """Add a row; return the one that it takes the place of, if there is one."""
        at = self._count % len(self._rows)
        old: list[int] | None = self._rows[at].tolist() if self._count >= len(self._rows) else None
        self._rows[at] = row
        self._count += 1
        return old

    def rows(self) -> Rows:
        """Return the rows that are kept, oldest first."""
        if self._count <= len(self._rows):
            return self._rows[: self._count].copy()
        return np.roll(self._rows, -(self._count % len(self._rows)), axis=0)


class RunRecorder:
    """
    Takes down the units of one engine life. It reads no clock; not thread-safe.

    Of a run that is longer than the capacity the newest part is kept.

    :param calibration: what the scheduler believes of the device
    :param facts: what is run
    :param capacity: transitions that are kept, and memberships of requests in units
    """

    def __init__(
        self, calibration: Calibration, facts: RunFacts, capacity: int = CAPACITY
    ) -> None:
        self._calibration, self._facts = calibration, facts
        self._transitions, self._members = _Ring(capacity, 5), _Ring(capacity, 3)
        self._before: dict[int, list[int]] = {}  # running at the oldest row: their starts
        self._from_ns: int | None = None

    def started(self, unit: Unit, now_ns: int) -> None:
        """Note that a unit was issued."""
        self._note(unit, now_ns, Change.STARTED)
        for request in unit.requests:
            self._members.append((unit.number, request.key, request.robot))

    def ended(self, unit: Unit, now_ns: int, *, good: bool) -> None:
        """
        Note that a unit was seen to end.

        :param good: whether it ended well
        """
        self._note(unit, now_ns, Change.ENDED if good else Change.FAILED)

    def _note(self, unit: Unit, now_ns: int, change: Change) -> None:
        row = (now_ns, unit.number, unit.stage, len(unit.requests), change)
        old = self._transitions.append(row)
        if self._from_ns is None:
            self._from_ns = now_ns
        if old is not None:
            self._from_ns = old[0]
            if old[4] == Change.STARTED:
                self._before[old[1]] = old
            else:
                self._before.pop(old[1], None)

    def run(self) -> RecordedRun:
        """Return what is kept."""
        before = np.array(list(self._before.values()), dtype=np.int64).reshape(-1, 5)
        transitions = np.concatenate([before, self._transitions.rows()])
        members = self._members.rows()
        return RecordedRun(
            transitions=transitions,
            members=members[np.isin(members[:, 0], transitions[:, 1])],
            from_ns=self._from_ns or 0,
            calibration=self._calibration,
            facts=self._facts,
        )

    def save(self, path: Path) -> None:
        """
        Write what is kept, all or nothing.

        :raises ConfigError: if the file cannot be written
        """
        save_run(self.run(), path)


def check_run_file(path: Path) -> None:
    """
    Refuse a name under which no run could be written, before it is made.

    :raises ConfigError: if it has another suffix, or its folder does not exist
    """
    if path.suffix != SUFFIX:
        raise ConfigError(f'record_run is {path}; the name must end with {SUFFIX}')
    if not path.parent.is_dir():
        raise ConfigError(f'record_run is {path}; there is no folder {path.parent}: make it first')


def save_run(run: RecordedRun, path: Path) -> None:
    """
    Write a run to a file that ``load_run`` reads, all or nothing.

    :param path: ends with ``.npz``
    :raises ConfigError: if it cannot be written
    """
    facts = {'format': FORMAT, 'from_ns': run.from_ns, **asdict(run.facts)}
    partial = path.with_name(f'{path.name}.part')
    try:
        with partial.open('wb') as file:
            np.savez(
                file,
                transitions=run.transitions,
                members=run.members,
                facts=np.array(json.dumps(facts)),
                calibration=np.array(calibration_text(run.calibration)),
            )
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f'run {path} cannot be written: {error.strerror}') from error


def load_run(path: Path) -> RecordedRun:
    """
    Return the run that a file holds.

    :raises ConfigError: if there is none
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        return _run(found)
    except OSError as error:
        raise ConfigError(f'run {path} cannot be read: {error.strerror}') from error
    except ConfigError as error:
        raise ConfigError(f'run {path}: {error}') from error
    except (
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        AttributeError,
        zipfile.BadZipFile,
    ) as error:
        raise ConfigError(
            f'{path} is not a recorded run; a server writes one with the setting record_run'
        ) from error


def _run(found: dict[str, Any]) -> RecordedRun:
    facts = json.loads(str(found['facts']))
    if facts.pop('format') != FORMAT:
        raise ConfigError(f'it was written by another version; this one reads format {FORMAT}')
    from_ns = int(facts.pop('from_ns'))
    transitions, members = found['transitions'], found['members']
    for rows, width in ((transitions, 5), (members, 3)):
        if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(rows.shape)
    _check(transitions)
    run = RecordedRun(
        transitions=transitions,
        members=members,
        from_ns=from_ns,
        calibration=parse_calibration(str(found['calibration']), 'of the run'),
        facts=RunFacts(**facts),
    )
    run.check_sizes(run.calibration)
    return run


def _check(transitions: Rows) -> None:
    """Refuse what no recorder has written, so that a replay can trust it."""
    time, unit, stage, count, change = transitions.T
    started, others = unit[change == Change.STARTED], unit[change != Change.STARTED]
    if not (
        (np.diff(time) >= 0).all()
        and np.isin(stage, list(Stage)).all()
        and np.isin(change, list(Change)).all()
        and (count >= 1).all()
        and len(np.unique(started)) == len(started)
        and len(np.unique(others)) == len(others)
        and np.isin(others, started).all()
    ):
        raise ConfigError('its transitions contradict each other: the file is damaged')
