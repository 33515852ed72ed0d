# SPDX-License-Identifier: Apache-2.0
"""Which published claims hold in simulation, told from the numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from xinfer_ros.fleet.paper_tables import TITLE_OF, FleetCase, PaperTables
from xinfer_ros.fleet.reproduction import FULL, Reproduction

CELL_POINTS = 5.0
CELLS_SHARE = 0.75
LARGE_GAIN = 5.0
INTERFERENCE_POINTS = 20.0
CROWDED = (16, 18, 20)
MAE_MS = 0.6
GOODPUT = 3.0
WIDE_REDUCTION_PCT = 25.0
ERC_ROBOTS = 2
AT_15 = FleetCase(workload='alternating', robots=15)
RANKING = ('xinfer', 'slack_gate', 'fifo', 'edf')


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """
    One statement of the paper.

    :param rule: when it counts as held
    :param found: what was simulated, in words
    """

    text: str
    rule: str
    found: str
    holds: bool


def claims(paper: PaperTables, sim: Reproduction) -> list[Claim]:
    """Return every claim that the simulation can speak to."""
    return [
        *_cells(paper, sim),
        *_ercs(paper, sim),
        *_ablations(paper, sim),
        *_predictions(paper, sim),
        *_slack_gate(paper, sim),
    ]


def _cells(paper: PaperTables, sim: Reproduction) -> Iterator[Claim]:
    for workload, table in (('alternating', 'table 10'), ('parcel', 'table 11')):
        off = {
            (case, policy): sim.attainment_pct(case, policy) - sum(rounds) / len(rounds)
            for case, row in paper.attainment_pct.items()
            if case.workload == workload
            for policy, rounds in row.items()
        }
        near = sum(abs(difference) <= CELL_POINTS for difference in off.values())
        (case, policy), worst = max(off.items(), key=lambda cell: abs(cell[1]))
        yield Claim(
            text=f'attainment of {table}, {workload}',
            rule=f'{CELLS_SHARE * 100:g} % of the cells within {CELL_POINTS:g} points',
            found=f'{near} of {len(off)}; worst {TITLE_OF[policy]} at {case.robots}: {worst:+.1f}',
            holds=near >= CELLS_SHARE * len(off),
        )


def _ercs(paper: PaperTables, sim: Reproduction) -> Iterator[Claim]:
    for workload, published in paper.erc.items():
        found = {policy: sim.ercs[workload, policy, 'paper'].erc for policy in RANKING}
        ranks = ' > '.join(f'{TITLE_OF[p]} {published[p] or "none"}' for p in RANKING)
        yield Claim(
            text=f'order of the ERCs, {workload}: {ranks}',
            rule='each above the next',
            found=', '.join(f'{TITLE_OF[p]} {erc}' for p, erc in found.items()),
            holds=all(found[a] > found[b] for a, b in pairwise(RANKING)),
        )
        expected = published[FULL] or 0
        yield Claim(
            text=f'XInfer serves {expected} robots, {workload}',
            rule=f'within {ERC_ROBOTS} robots',
            found=f'{found[FULL]}',
            holds=abs(found[FULL] - expected) <= ERC_ROBOTS,
        )


def _ablations(paper: PaperTables, sim: Reproduction) -> Iterator[Claim]:
    large = [
        (case, name)
        for case, row in paper.gain.items()
        for name, gain in row.items()
        if abs(gain) > LARGE_GAIN
    ]
    wrong = [
        (case, name) for case, name in large if sim.gain(case, name) * paper.gain[case][name] <= 0
    ]
    exceptions = ', '.join(f'{name} at {case}' for case, name in wrong)
    yield Claim(
        text=f'ablations that change attainment by more than {LARGE_GAIN:g} points (table 8)',
        rule='every one has the published sign',
        found=f'{len(large) - len(wrong)} of {len(large)}'
        + (f'; not {exceptions}' if wrong else ''),
        holds=not wrong,
    )
    crowded = {
        n: sim.gain(FleetCase(workload='alternating', robots=n), 'no_interference_model')
        for n in CROWDED
    }
    yield Claim(
        text='without the interference model a crowded fleet breaks down',
        rule=f'costs {INTERFERENCE_POINTS:g} points or more at 16 to 20 robots',
        found=', '.join(f'{gain:.1f} at {n}' for n, gain in crowded.items()),
        holds=min(crowded.values()) >= INTERFERENCE_POINTS,
    )
    strict = {case: sim.gain(case, 'strict_gating') for case in paper.gain}
    least = min(strict, key=lambda case: strict[case])
    yield Claim(
        text='strict gating costs attainment everywhere',
        rule='costs in every row of table 8',
        found=f'{sum(gain > 0 for gain in strict.values())} of {len(strict)}; '
        f'least {strict[least]:+.1f} at {least}',
        holds=min(strict.values()) > 0,
    )


def _predictions(paper: PaperTables, sim: Reproduction) -> Iterator[Claim]:
    found = {
        n: sim.mean(FleetCase(workload='alternating', robots=n), FULL, 'mae_ms')
        for n in paper.mae_ms
    }
    published = ', '.join(f'{mae:.1f} ms at {n}' for n, mae in paper.mae_ms.items())
    yield Claim(
        text=f'mean error of predicted stage times: {published}',
        rule=f'each within {MAE_MS:g} ms',
        found=', '.join(f'{mae:.1f} at {n}' for n, mae in found.items()),
        holds=all(abs(found[n] - mae) <= MAE_MS for n, mae in paper.mae_ms.items()),
    )


def _slack_gate(paper: PaperTables, sim: Reproduction) -> Iterator[Claim]:
    published = paper.goodput_difference[AT_15]
    found = sim.goodput_difference(AT_15)
    yield Claim(
        text=f'15 robots: {published:.1f} more responses on time a second than Slack-Gate',
        rule=f'within {GOODPUT:g}',
        found=f'{found:+.1f}',
        holds=abs(found - published) <= GOODPUT,
    )
    reduction = sim.wide_reduction_pct(AT_15)
    yield Claim(
        text=f'15 robots: wide mean latency {paper.wide_reduction_pct:.0f} % under Slack-Gate',
        rule=f'at least {WIDE_REDUCTION_PCT:g} % lower',
        found=f'{reduction:.0f} % lower',
        holds=reduction >= WIDE_REDUCTION_PCT,
    )
