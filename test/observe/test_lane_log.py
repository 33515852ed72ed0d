# SPDX-License-Identifier: Apache-2.0
"""The lanes' timeline out of what engines send."""

from typing import Any

from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.seen import SeenUnit, SeenWaiting, Timeline
from xinfer_ros.observe.lane_log import MAX_UNITS, LaneLog
from xinfer_ros.observe.timeline import LaneUnit, Waiting

from .viewed_fleet import MS


def _unit(number: int, started_ms: int, ended_ms: int | None, **changes: Any) -> SeenUnit:
    fields: dict[str, Any] = {
        'number': number,
        'stage': Stage.PREFILL,
        'started_ns': started_ms * MS,
        'ended_ns': None if ended_ms is None else ended_ms * MS,
        'robots': (0, 1),
        'keys': (10, 11),
        'protected': False,
    }
    return SeenUnit(**(fields | changes))


def _seen(to_ms: int, *units: SeenUnit, waiting: tuple[SeenWaiting, ...] = ()) -> Timeline:
    return Timeline(from_ns=(to_ms - 250) * MS, to_ns=to_ms * MS, units=units, waiting=waiting)


def _log() -> LaneLog:
    log = LaneLog()
    log.name(0, 'left')
    log.name(1, 'right')
    return log


def test_a_unit_that_is_told_twice_is_one() -> None:
    log = _log()
    log.add(7, _seen(250, _unit(1, 200, None)))
    assert log.timeline(0, 250 * MS).units[0].ended_ns is None
    log.add(7, _seen(500, _unit(1, 200, 260), _unit(2, 240, 300, protected=True)))
    assert log.timeline(0, 500 * MS).units == (
        LaneUnit(
            number=1, stage=Stage.PREFILL, started_ns=200 * MS, ended_ns=260 * MS,
            robots=('left', 'right'), keys=(10, 11), protected=False,
        ),
        LaneUnit(
            number=2, stage=Stage.PREFILL, started_ns=240 * MS, ended_ns=300 * MS,
            robots=('left', 'right'), keys=(10, 11), protected=True,
        ),
    )  # fmt: skip


def test_only_what_ran_in_between_is_returned() -> None:
    log = _log()
    log.add(7, _seen(500, _unit(1, 0, 100), _unit(2, 90, 210), _unit(3, 300, 400)))
    assert [unit.number for unit in log.timeline(200 * MS, 299 * MS).units] == [2]


def test_a_unit_of_an_engine_that_dies_ends_where_it_was_last_told_of() -> None:
    log = _log()
    log.add(7, _seen(250, _unit(1, 200, None)))
    log.add(8, _seen(5000, _unit(1, 4900, 4950)))  # numbers begin anew
    ended = {unit.started_ns: unit.ended_ns for unit in log.timeline(0, 5000 * MS).units}
    assert ended == {200 * MS: 250 * MS, 4900 * MS: 4950 * MS}


def test_a_request_waits_for_the_reason_that_the_scheduler_gave() -> None:
    log = _log()
    waiting = SeenWaiting(robot=1, key=9, stage=Stage.VIT, since_ns=5, why='it waits')
    log.add(7, _seen(250, waiting=(waiting,)))
    told = Waiting(robot='right', key=9, stage=Stage.VIT, since_ns=5, why='it waits')
    assert log.timeline(0, 300 * MS).waiting == (told,)
    assert log.timeline(0, 5000 * MS).waiting == ()  # an engine that is silent says nothing


def test_robot_that_is_not_known_has_its_number() -> None:
    log = LaneLog()
    log.add(7, _seen(500, _unit(1, 0, 100)))
    assert log.timeline(0, 500 * MS).units[0].robots == ('robot 0', 'robot 1')


def test_memory_is_bounded() -> None:
    log = _log()
    log.add(7, _seen(10**6, *(_unit(n, n, n + 1) for n in range(MAX_UNITS + 10))))
    units = log.timeline(0, 10**6 * MS).units
    assert (len(units), units[0].number) == (MAX_UNITS, 10)
