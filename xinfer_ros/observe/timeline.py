# SPDX-License-Identifier: Apache-2.0
"""What the lanes of the engine do, and why requests wait."""

from dataclasses import dataclass

from xinfer_ros.core.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneUnit:
    """
    A unit that a lane has executed, or executes. Times on the server's monotonic clock [ns].

    :param number: unique in one engine life
    :param ended_ns: None while it runs
    :param robots: ids of the robots whose requests it holds, in the order of the batch
    :param keys: their requests
    :param protected: whether the scheduling policy shielded one of them when it was issued
    """

    number: int
    stage: Stage
    started_ns: int
    ended_ns: int | None
    robots: tuple[str, ...]
    keys: tuple[int, ...]
    protected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """
    A request that is ready for a stage and was left waiting.

    :param robot: id of its robot
    :param since_ns: when it became ready, server's monotonic clock [ns]
    :param why: the scheduling policy's newest decision about it, a sentence
    """

    robot: str
    key: int
    stage: Stage
    since_ns: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """
    What happened in the lanes between two moments of the server's monotonic clock [ns].

    :param units: by their start, those that ran at any time in between
    :param waiting: who waits at the end of it
    """

    from_ns: int
    to_ns: int
    units: tuple[LaneUnit, ...] = ()
    waiting: tuple[Waiting, ...] = ()
