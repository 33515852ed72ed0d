# SPDX-License-Identifier: Apache-2.0
"""
A decision log becomes a trace that a viewer can show.

Source of the rules: Trace Event Format. Slices (X) of one track nest and never overlap; a flow (s)
has one end (f); counters (C) hold numbers; names of tracks (M) are given once.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.run_events import (
    Ended,
    LoggedRequest,
    LoggedUnit,
    Outcome,
    Submitted,
    UnitEnded,
    UnitStarted,
)
from xinfer_ros.fleet.trace_events import LANES, ROBOTS, SCHEDULER, TraceTracks
from xinfer_ros.fleet.trace_file import TraceCount, write_trace
from xinfer_ros.sched.log_files import DecisionLog

from .logged_rounds import logged_round

Event = dict[str, Any]
NEEDED = {
    'X': {'ts', 'dur', 'name', 'args'},
    'i': {'ts', 's', 'name', 'args'},
    's': {'ts', 'id', 'cat', 'name'},
    'f': {'ts', 'id', 'cat', 'name', 'bp'},
    'C': {'ts', 'name', 'args'},
    'M': {'name', 'args'},
}
NANOSECOND = 1e-3  # in the times of a trace
ROUNDING = NANOSECOND / 2


@pytest.fixture(scope='module')
def log(tmp_path_factory: pytest.TempPathFactory) -> DecisionLog:
    """Return the log of a policy that protects and defers."""
    return logged_round(tmp_path_factory.mktemp('log'), 'xinfer')


@pytest.fixture(scope='module')
def written(log: DecisionLog, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TraceCount]:
    """Return the trace of that log."""
    path = tmp_path_factory.mktemp('trace') / 'trace.json'
    return path, write_trace(log, path)


@pytest.fixture
def events(written: tuple[Path, TraceCount]) -> list[Event]:
    """Return the events of that trace."""
    found: list[Event] = json.loads(written[0].read_text())['traceEvents']
    return found


def _tracks(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    tracks = defaultdict(list)
    for event in events:
        if event['ph'] == 'X':
            tracks[event['pid'], event['tid']].append(event)
    return tracks


def test_every_event_has_what_its_kind_needs(
    events: list[Event], written: tuple[Path, TraceCount]
) -> None:
    assert len(events) == written[1].trace_events
    for event in events:
        assert NEEDED[event['ph']] <= set(event)
        assert event['pid'] in (LANES, ROBOTS, SCHEDULER)
        assert isinstance(event['tid'], int)
        if event['ph'] != 'M':
            assert event['ts'] >= 0.0
        if event['ph'] == 'C':
            assert all(isinstance(value, int) for value in event['args'].values())
    assert {event['ph'] for event in events} == set(NEEDED)


def _assert_nested(events: list[Event]) -> None:
    for track in _tracks(events).values():
        open_until: list[float] = []
        for event in sorted(track, key=lambda event: (event['ts'], -event['dur'])):
            end = event['ts'] + event['dur']
            while open_until and open_until[-1] <= event['ts'] + ROUNDING:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + ROUNDING
            open_until.append(end)


def test_slices_of_a_track_nest_and_never_overlap(events: list[Event]) -> None:
    _assert_nested(events)


def test_request_that_arrives_before_the_one_before_has_ended_does_not_overlap() -> None:
    """As on a live server, where a request is submitted some time after its arrival."""
    tracks = TraceTracks({0: 'r0'}, begins_ns=5)
    old, new = _request(1, arrival_ns=0), _request(2, arrival_ns=20)
    unit = LoggedUnit(
        number=1,
        stage=Stage.VIT,
        requests=(old,),
        started_ns=12,
        foreseen_end_ns=30,
        protected=False,
    )
    happened = (
        Submitted(at_ns=10, request=old, slack_ms=1.0),
        UnitStarted(at_ns=12, unit=unit),
        UnitEnded(at_ns=30, unit=unit, good=True),
        Ended(at_ns=35, request=old, outcome=Outcome.ANSWERED),
        Submitted(at_ns=40, request=new, slack_ms=1.0),
        Ended(at_ns=50, request=new, outcome=Outcome.ANSWERED),
    )
    events = [found for event in happened for found in tracks.take(event)]
    _assert_nested(events)
    requests = {e['name']: e for e in events if e['name'].startswith('request ')}
    ends = {name: (e['ts'], e['ts'] + e['dur']) for name, e in requests.items()}
    assert ends == {'request 1': (0.0, 0.03), 'request 2': (0.03, 0.045)}


def _request(key: int, *, arrival_ns: int) -> LoggedRequest:
    return LoggedRequest(
        key=key,
        robot=0,
        arrival_ns=arrival_ns,
        budget_ns=100,
        deadline_ns=arrival_ns + 100,
        ready_ns=arrival_ns,
    )


def test_every_flow_has_one_start_and_one_end(events: list[Event]) -> None:
    starts = Counter((e['cat'], e['id']) for e in events if e['ph'] == 's')
    ends = Counter((e['cat'], e['id']) for e in events if e['ph'] == 'f')
    assert starts == ends
    assert set(starts.values()) == {1}
    assert {category for category, _ in starts} == {'unit', 'deferral'}


def test_every_track_with_slices_or_instants_has_one_name(events: list[Event]) -> None:
    names = Counter((e['pid'], e['tid']) for e in events if e['name'] == 'thread_name')
    used = {(e['pid'], e['tid']) for e in events if e['ph'] in 'Xi'}
    assert set(names) == used
    assert set(names.values()) == {1}
    lanes = {e['args']['name'] for e in events if e['name'] == 'thread_name' and e['pid'] == LANES}
    assert {lane.split()[0] for lane in lanes} == {stage.name for stage in Stage}


def test_units_requests_and_decisions_are_all_there(
    events: list[Event], written: tuple[Path, TraceCount]
) -> None:
    told = written[1].run_events
    lanes = [e for e in events if e['ph'] == 'X' and e['pid'] == LANES]
    assert len(lanes) == told[UnitEnded]
    assert {e['args']['protected'] for e in lanes} == {True, False}
    requests = [e for e in events if e['ph'] == 'X' and e['name'].startswith('request ')]
    assert len(requests) == told[Ended] == told[Submitted]
    deadlines = [e for e in events if e['name'] == 'deadline']
    assert len(deadlines) == len(requests)
    current = [e for e in events if e['name'] == 'deferred_current']
    assert current
    assert {'checked_slack', 'checked_cost', 'slack_ms', 'against_robot'} <= set(
        current[0]['args']
    )
    assert {e['name'] for e in events if e['ph'] == 'C'} == {'waiting', 'running', 'protected'}


def test_file_that_cannot_be_written_is_refused_and_leaves_nothing(
    log: DecisionLog, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match='cannot be written: No such file'):
        write_trace(log, tmp_path / 'none' / 'trace.json')
    (tmp_path / 'trace.json').mkdir()
    with pytest.raises(ConfigError, match='cannot be written: Is a directory'):
        write_trace(log, tmp_path / 'trace.json')
    assert [path.name for path in tmp_path.iterdir()] == ['trace.json']
