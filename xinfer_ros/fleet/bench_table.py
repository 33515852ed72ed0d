# SPDX-License-Identifier: Apache-2.0
"""The table of a benchmark: one row a system and fleet."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from xinfer_ros.fleet.bench_record import BenchRecord
from xinfer_ros.fleet.report_table import ReportTable

Value = float | None
_COLUMNS: tuple[tuple[str, Callable[[BenchRecord], Value], int], ...] = (
    ('answers 1/s', lambda r: r.rps, 1),
    ('P50 ms', lambda r: r.p50_ms, 1),
    ('P95 ms', lambda r: r.p95_ms, 1),
    ('P99 ms', lambda r: r.p99_ms, 1),
    ('CPU ms', lambda r: r.server_cpu_ms_per_request, 2),
    ('decode ms', lambda r: r.decode_cpu_ms_per_request, 2),
    ('on time %', lambda r: 100.0 * r.attainment, 1),
    ('goodput 1/s', lambda r: r.goodput_hz, 1),
)
_ERRORS = ('wrong', 'unanswered', 'refused')
NOTE = (
    'Latency: from the observation sent to the answer received, by the robot. CPU: of all '
    'processes of the server per request, without decoding pictures, which stands beside where it '
    'has threads of its own. on time: share of the answers within their budget. errors: answers '
    "that were not the asker's / requests without an answer / answers with a reason instead of "
    'rows. late: of the load generator, sent after due, 99 % quantile.'
)


def refusal_lines(records: Sequence[BenchRecord]) -> list[str]:
    """Return why requests were answered without rows, a line each round in which any were."""
    return [
        f'{r.system} with {r.robots} robots, seed {r.seed}: answers without rows: {r.reasons}'
        for r in records
        if r.reasons
    ]


def rounds_of(records: Sequence[BenchRecord]) -> dict[tuple[str, int], list[BenchRecord]]:
    """Return the rounds of each system and fleet, in the order in which they were measured."""
    found: dict[tuple[str, int], list[BenchRecord]] = {}
    for record in records:
        found.setdefault((record.system, record.robots), []).append(record)
    return found


def middle(values: Sequence[Value]) -> float:
    """Return the median of what is known, NaN if nothing is."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return median(known) if known else math.nan


def bench_table(title: str, records: Sequence[BenchRecord]) -> ReportTable:
    """Return one row a system and fleet: medians of the rounds, and sums of what went wrong."""
    several = any(len(rounds) > 1 for rounds in rounds_of(records).values())
    return ReportTable(
        title=title,
        columns=(
            'system', 'robots', 'images', 'X ms', *(name for name, _, _ in _COLUMNS), 'errors',
            'late ms',
        ),
        rows=tuple(
            (system, str(robots), *_cells(rounds))
            for (system, robots), rounds in rounds_of(records).items()
        ),
        note=f'{"Medians of the rounds, counts are sums. " if several else ""}{NOTE}',
    )  # fmt: skip


def _cells(rounds: Sequence[BenchRecord]) -> list[str]:
    counts = [sum(getattr(r, name) for r in rounds) for name in _ERRORS]
    x_ms = rounds[0].x_ms
    return [
        rounds[0].images,
        '–' if x_ms is None else f'{x_ms:g}',
        *(_number([get(r) for r in rounds], digits) for _, get, digits in _COLUMNS),
        ' / '.join(map(str, counts)),
        _number([r.lateness_p99_ms for r in rounds], 1),
    ]


def _number(values: Sequence[Value], digits: int) -> str:
    value = middle(values)
    return '–' if math.isnan(value) else f'{value:.{digits}f}'
