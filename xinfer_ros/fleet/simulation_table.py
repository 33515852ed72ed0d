# SPDX-License-Identifier: Apache-2.0
"""Tables of simulated rounds, searches and costs."""

from collections.abc import Mapping, Sequence

from xinfer_ros.fleet.records import DecisionCostRecord, ErcRecord, RoundRecord
from xinfer_ros.fleet.report_table import ReportTable

_SHARES = (('attainment', 'on time %'), ('tight_attainment', 'tight %'))
_MEANS = (
    ('goodput', 'goodput 1/s', 1.0, 1),
    ('starvation', 'starved %', 100.0, 1),
    ('fairness', 'fair', 1.0, 3),
    ('wide_mean_ms', 'wide ms', 1.0, 0),
    ('p50_ms', 'P50 ms', 1.0, 0),
    ('p99_ms', 'P99 ms', 1.0, 0),
    ('tight_p999_ms', 'tight P99.9', 1.0, 0),
    ('far_late', '2x late %', 100.0, 2),
    ('min_rate_hz', 'slowest Hz', 1.0, 2),
    ('mae_ms', 'MAE ms', 1.0, 1),
)
_ONE_FLEET = ('p50_ms', 'mae_ms')  # there is no room for them beside policy and robots
_NOTE = (
    'on time: responses within their budget; starved: time without anything to execute; fair: '
    "Jain's index of update rates; tight, wide: smallest and largest budget; 2x late: later than "
    'twice the budget; slowest: update rate of the slowest robot; MAE: of predicted stage times. '
    'foresight paces robots with time to spare: fewer requests, not fewer in time.'
)


def rounds_table(title: str, records: Sequence[RoundRecord]) -> ReportTable:
    """Return the rounds: each one if they are of one fleet, else the mean of each fleet."""
    fleets: dict[tuple[str, int], list[RoundRecord]] = {}
    for record in records:
        fleets.setdefault((record.policy, record.robots), []).append(record)
    shares, means = [name for _, name in _SHARES], [mean[1] for mean in _MEANS]
    if len(fleets) == 1:
        first = records[0]
        rows = [(str(r.round), *_cells([r])) for r in records]
        if len(records) > 1:
            rows.append(('mean', *_cells(records)))
        return ReportTable(
            title=f'{first.robots} robots under {first.policy}: {title}',
            columns=('round', *shares, *means),
            rows=tuple(rows),
            note=_NOTE,
        )
    return ReportTable(
        title=title,
        columns=('policy', 'robots', shares[0], 'worst %', shares[1], *(m[1] for m in _several())),
        rows=tuple(
            (policy, str(robots), *_cells(rounds, worst=True))
            for (policy, robots), rounds in fleets.items()
        ),
        note=f'Means of the rounds; worst: on time in the worst one. {_NOTE}',
    )


def _cells(rounds: Sequence[RoundRecord], worst: bool = False) -> list[str]:
    def mean(name: str, factor: float, digits: int) -> str:
        values = [getattr(r, name) for r in rounds]
        return '–' if None in values else f'{factor * sum(values) / len(values):.{digits}f}'

    attainment, tight = (mean(name, 100.0, 1) for name, _ in _SHARES)
    least = f'{100.0 * min(r.attainment for r in rounds):.1f}'
    return [
        attainment,
        *([least] if worst else []),
        tight,
        *(
            mean(name, factor, digits)
            for name, _, factor, digits in (_several() if worst else _MEANS)
        ),
    ]


def _several() -> list[tuple[str, str, float, int]]:
    return [mean for mean in _MEANS if mean[0] not in _ONE_FLEET]


def erc_table(title: str, records: Sequence[ErcRecord]) -> ReportTable:
    """Return the capacities found, the largest first."""

    def number(value: float | None, factor: float, digits: int) -> str:
        return '–' if value is None else f'{factor * value:.{digits}f}'

    return ReportTable(
        title=title,
        columns=(
            'policy', 'ERC', 'next fails', 'on time %', 'tight %', 'tight P99.9 ms',
            '2x late %', 'slowest Hz', 'mean Hz', 'tested',
        ),
        rows=tuple(
            (
                r.policy,
                str(r.erc) if r.first_failing else f'{r.erc} or more',
                str(r.first_failing or '–'),
                number(r.attainment, 100, 1),
                number(r.tight_attainment, 100, 1),
                number(r.tight_p999_ms, 1, 0),
                number(r.far_late, 100, 2),
                number(r.min_rate_hz, 1, 2),
                number(r.mean_rate_hz, 1, 2),
                str(len(r.passing) + len(r.failing)),
            )
            for r in sorted(records, key=lambda record: -record.erc)
        ),
        note='ERC: the largest fleet of which every round passes, as does every smaller fleet '
        'tested; the numbers are of that fleet in its worst round.',
    )  # fmt: skip


def erc_line(record: ErcRecord, max_robots: int) -> str:
    """Return why the next larger fleet fails or was not measured, or that none tested fails."""
    if record.first_failing is None and record.faults:
        return f'{record.policy}: {"; ".join(record.faults)}'
    if record.first_failing is None:
        return (
            f'{record.policy}: no fleet of up to {max_robots} robots fails; --max-robots tests '
            'larger ones'
        )
    return f'{record.policy}: {record.first_failing} robots fail: {"; ".join(record.faults)}'


def population_line(
    policy: str, robots: int, rounds: Sequence[RoundRecord], faults: Sequence[str]
) -> str:
    """Return a population that was tested, as a line."""
    shares = ' '.join(f'{100 * r.attainment:.1f}' for r in rounds)
    verdict = f'fails: {"; ".join(faults)}' if faults else 'passes'
    return f'{policy} with {robots} robots: {shares} % on time, {verdict}'


def cost_table(
    records: Sequence[DecisionCostRecord], published: Mapping[int, tuple[float, float]]
) -> ReportTable:
    """Return costs, the published ones beside."""
    kinds = dict.fromkeys((r.policy, r.implementation) for r in records)
    sizes = list(dict.fromkeys(r.robots for r in records))
    found = {(r.policy, r.implementation, r.robots): r for r in records}

    def cell(policy: str, implementation: str, robots: int) -> str:
        record = found.get((policy, implementation, robots))
        return f'{record.p50_us:.1f} / {record.p99_us:.1f}' if record else '–'

    def of_paper(robots: int) -> str:
        if robots not in published:
            return '–'
        return f'{published[robots][0]:g} / {published[robots][1]:g}'

    return ReportTable(
        title='Cost of a decision [us], median / 99 % quantile',
        columns=('policy', 'implementation', *(f'{robots} robots' for robots in sizes)),
        left=('implementation',),
        rows=(
            ('xinfer', 'published', *map(of_paper, sizes)),
            *((policy, made, *(cell(policy, made, n) for n in sizes)) for policy, made in kinds),
        ),
        note='A decision: refresh of the policy and its admission checks in a pass with at least '
        'one request waiting, replayed in order. Published on a Xeon 6530; here on this machine.',
    )  # fmt: skip
