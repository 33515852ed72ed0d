# SPDX-License-Identifier: Apache-2.0
"""The controllers of the brain tier side by side: what runs, the tables, and the bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from xinfer_ros.brain.scenario import DISTURBANCE_WORDS, DISTURBANCES, BrainScenario, steady
from xinfer_ros.fleet.brain_records import BrainRecord
from xinfer_ros.fleet.brain_runs import DEFAULT, BrainTask
from xinfer_ros.fleet.report_table import ReportTable

NAMED = (12, 16, 20, 24)  # the numbers that the default must reach
HINDSIGHT = (12, 16, 20, 21, 22, 23, 24)  # those the best is found among, steady
DISTURBED = (12, 13, 14, 16, 18, 20, 24)  # and when something happens
FLEETS = (32, 48)
RECOVERY_S = 120.0
FAIRNESS = 0.95


def table_tasks(seeds: Sequence[int]) -> list[tuple[BrainTask, ...]]:
    """Return the runs of the table, in groups that meet the same episodes."""
    plans: list[tuple[BrainScenario, tuple[str, ...]]] = [
        (scenario, ('open', *(f'static:{k}' for k in DISTURBED), DEFAULT))
        for scenario in DISTURBANCES.values()
    ]
    fixed = tuple(f'static:{k}' for k in HINDSIGHT)
    plans += [
        (steady(robots), ('open', *fixed, 'aimd_usage', 'aimd_hits', DEFAULT)) for robots in FLEETS
    ]
    plans += [(steady(28), ('open', DEFAULT)), (steady(20), ('open', DEFAULT))]
    return [
        tuple(BrainTask(controller=name, scenario=scenario, seed=seed) for name in controllers)
        for scenario, controllers in plans
        for seed in seeds
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """
    Something that must hold.

    :param found: the figures
    """

    name: str
    found: str
    holds: bool


class Bars:
    """Holds the records against what was demanded."""

    def __init__(self, records: Sequence[BrainRecord]) -> None:
        self._records = {(r.scenario, r.robots, r.controller): r for r in records}

    def all(self) -> list[Bar]:
        """Return every bar."""
        return [
            self._within('20 robots, open: about 2.4 requests/s', 20, 'open', 2.3, 2.5),
            self._hits(),
            self._within('32 robots, open: 0.48 to 0.75', 32, 'open', 0.48, 0.75),
            self._within('32 robots, K = 16: at least 2.2', 32, 'static:16', 2.2, 9.0),
            self._within('48 robots, K = 20: about 2.4', 48, 'static:20', 2.3, 2.5),
            *(
                self._within(f'{n} robots, aimd_usage: below 1.5', n, 'aimd_usage', 0.0, 1.5)
                for n in FLEETS
            ),
            *(self._best(n, NAMED, 1.0) for n in FLEETS),
            *(self._best(n, HINDSIGHT, 0.98) for n in FLEETS),
            self._disturbed(),
            *self._recovery(),
            self._fair(),
        ]

    def _steady(self, robots: int, controller: str) -> BrainRecord:
        return self._records['steady', robots, controller]

    def _within(self, name: str, robots: int, controller: str, low: float, high: float) -> Bar:
        rps = self._steady(robots, controller).rps
        return Bar(name=name, found=f'{rps:.3f}', holds=low <= rps <= high)

    def _hits(self) -> Bar:
        hits = self._steady(20, 'open').hits
        name = '20 robots, open: more than 99 % hits'
        return Bar(name=name, found=f'{100 * hits:.2f} %', holds=hits > 0.99)

    def _best(self, robots: int, numbers: Sequence[int], share: float) -> Bar:
        rates = {k: self._steady(robots, f'static:{k}').rps for k in numbers}
        best = max(rates, key=lambda k: rates[k])
        rps = self._steady(robots, DEFAULT).rps
        wanted = f'K of {", ".join(map(str, numbers))}' if share == 1.0 else 'K in hindsight'
        least = 'at least' if share == 1.0 else f'at least {100 * share:.0f} % of'
        more = 100 * (rps / rates[best] - 1)
        return Bar(
            name=f'{robots} robots, {DEFAULT}: {least} the best {wanted}',
            found=f'{rps:.3f}, K = {best} {rates[best]:.3f}: {more:+.1f} %',
            holds=rps >= share * rates[best],
        )

    def _disturbed(self) -> Bar:
        means = {
            name: fmean(self._records[s.name, s.robots, name].rps for s in DISTURBANCES.values())
            for name in (DEFAULT, *(f'static:{k}' for k in DISTURBED))
        }
        default = means.pop(DEFAULT)
        best = max(means, key=lambda name: means[name])
        return Bar(
            name=f'four disturbances, {DEFAULT}: better than every one fixed K',
            found=f'{default:.3f}, {best} {means[best]:.3f}: '
            f'{100 * (default / means[best] - 1):+.1f} %',
            holds=default > means[best],
        )

    def _recovery(self) -> list[Bar]:
        record = self._records['capacity', DISTURBANCES['capacity'].robots, DEFAULT]
        return [
            _recovered('80', record.nearly_s, record.nearly_most_s),
            _recovered('90', record.recovery_s, record.recovery_most_s),
        ]

    def _fair(self) -> Bar:
        least = min(
            (record for record in self._records.values() if record.controller == DEFAULT),
            key=lambda record: record.jain_least,
        )
        return Bar(
            name=f"every run, {DEFAULT}: Jain's index of the robots {FAIRNESS} or more",
            found=f'{least.jain_least:.3f}, {least.scenario}, {least.robots} robots',
            holds=least.jain_least >= FAIRNESS,
        )


def _recovered(percent: str, mean_s: float | None, most_s: float | None) -> Bar:
    found, holds = 'a run does not', False
    if mean_s is not None and most_s is not None:
        found, holds = f'{mean_s:.0f} s, at most {most_s:.0f} s', mean_s <= RECOVERY_S
    return Bar(
        name=f'loss of capacity, {DEFAULT}: at {percent} % within 120 s',
        found=found,
        holds=holds,
    )


def bars_table(bars: Sequence[Bar]) -> ReportTable:
    """Return what had to hold, and whether it does."""
    return ReportTable(
        title='Bars',
        columns=('bar', 'found', 'holds'),
        left=('found',),
        rows=tuple((bar.name, bar.found, 'yes' if bar.holds else 'NO') for bar in bars),
        note='Loss of capacity: mean time until the first minute begins in which a run has 80 or '
        '90 % of the rate that the best fixed number holds of the smaller cache once it has '
        'settled.',
    )


def records_table(records: Sequence[BrainRecord]) -> ReportTable:
    """Return one scenario and fleet, a row a controller."""
    first = records[0]
    words = DISTURBANCE_WORDS.get(first.scenario, 'nothing happens')
    return ReportTable(
        title=f'{first.scenario}, {first.robots} robots: {words}',
        columns=(
            'controller', 'requests/s', 'least', 'most', 'hits %', 'episodes/min', 'Jain',
            'Jain least', 'onset s', 'thrashed', 'parked',
        ),
        rows=tuple(_cells(record) for record in records),
        note=(f'Means of {first.runs} runs, seeds' if first.runs > 1 else 'One run, seed')
        + f' {first.seed}{" and following" if first.runs > 1 else ""}. onset: median start of the '
        'first 120 s with fewer than 80 % hits; thrashed: runs that had one.',
    )  # fmt: skip


def _cells(record: BrainRecord) -> tuple[str, ...]:
    return (
        record.controller,
        f'{record.rps:.3f}',
        f'{record.rps_least:.2f}',
        f'{record.rps_most:.2f}',
        f'{100 * record.hits:.1f}',
        f'{record.episodes_per_min:.2f}',
        f'{record.jain:.3f}',
        f'{record.jain_least:.3f}',
        '–' if record.onset_s is None else f'{record.onset_s:.0f}',
        f'{record.thrashed}/{record.runs}',
        f'{record.parks:.0f}',
    )


def scenarios_of(records: Sequence[BrainRecord]) -> list[list[BrainRecord]]:
    """Return the records by scenario and fleet, the steady fleets first."""
    groups: dict[tuple[bool, int, str], list[BrainRecord]] = {}
    for record in records:
        robots = record.robots if record.scenario == 'steady' else 0
        key = (record.scenario != 'steady', robots, record.scenario)
        groups.setdefault(key, []).append(record)
    return [groups[key] for key in sorted(groups)]
