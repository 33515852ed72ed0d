# SPDX-License-Identifier: Apache-2.0
"""What an engine tells of itself to who watches: what ran, what waits, and why."""

import dataclasses
from typing import Any

from xinfer_ros.core.stage import Stage


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """
    Front end: who a robot is, for those who read what the engine tells.

    :param robot: small number of the robot, 0, 1, ...; another one may take its place later
    :param name: its id
    """

    robot: int
    name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Front end: whether a Timeline is wanted with every beat; none is, until this says so."""

    on: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeenUnit:
    """
    A unit that was in execution since the Timeline before.

    :param started_ns: when it was issued, monotonic [ns]
    :param ended_ns: when it was seen to end, None if it runs [ns]
    :param robots: numbers of the robots of its requests
    :param keys: its requests
    :param protected: whether the scheduling policy shielded one of them as it started
    """

    number: int
    stage: Stage
    started_ns: int
    ended_ns: int | None
    robots: tuple[int, ...]
    keys: tuple[int, ...]
    protected: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeenWaiting:
    """
    A request that waits.

    :param robot: number of its robot
    :param since_ns: since when it waits for this stage, monotonic [ns]
    :param why: the newest decision about it, as a sentence
    """

    robot: int
    key: int
    stage: Stage
    since_ns: int
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """
    Engine: what ran and what waits, before each beat while somebody watches.

    :param from_ns: where the Timeline before has ended, monotonic [ns]
    :param to_ns: now [ns]
    :param left_out: units and requests that did not fit into a record
    """

    from_ns: int
    to_ns: int
    units: tuple[SeenUnit, ...]
    waiting: tuple[SeenWaiting, ...]
    left_out: int = 0

    @classmethod
    def of(cls, fields: dict[str, Any]) -> 'Timeline':
        """Return the timeline of which ``dataclasses.asdict`` has made plain values."""
        units = tuple(SeenUnit(**_plain(unit)) for unit in fields.pop('units'))
        waiting = tuple(SeenWaiting(**_plain(one)) for one in fields.pop('waiting'))
        return cls(units=units, waiting=waiting, **fields)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Undo what JSON makes of tuples and stages."""
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return values | {'stage': Stage(fields['stage'])}
