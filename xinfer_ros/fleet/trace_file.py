# SPDX-License-Identifier: Apache-2.0
"""Writes the trace of a decision log to a file, event by event."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.run_events import RunEvent
from xinfer_ros.fleet.run_story import run_events
from xinfer_ros.fleet.trace_events import TraceEvent, TraceTracks
from xinfer_ros.sched.log_files import DecisionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCount:
    """What was written: trace events, and how many of each kind of ``RunEvent`` they tell."""

    trace_events: int
    run_events: Counter[type[RunEvent]]


def write_trace(log: DecisionLog, path: Path) -> TraceCount:
    """
    Write a log as Trace Event Format, all or nothing.

    :raises ConfigError: if it cannot be written, or the log cannot be run again
    """
    partial = path.with_name(f'{path.name}.part')
    kinds, count = Counter[type[RunEvent]](), 0
    try:
        with partial.open('w') as file:
            file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            for event in _trace_events(log, kinds):
                file.write(',\n' if count else '')
                json.dump(event, file, separators=(',', ':'), allow_nan=False)
                count += 1
            file.write('\n]}\n')
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f'trace {path} cannot be written: {error.strerror}') from error
    finally:
        partial.unlink(missing_ok=True)
    return TraceCount(trace_events=count, run_events=kinds)


def _trace_events(log: DecisionLog, kinds: Counter[type[RunEvent]]) -> Iterator[TraceEvent]:
    tracks = TraceTracks(log.names, log.begins_ns)
    yield from tracks.head()
    for event in run_events(log):
        kinds[type(event)] += 1
        yield from tracks.take(event)
