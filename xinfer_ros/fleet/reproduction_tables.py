# SPDX-License-Identifier: Apache-2.0
"""The published tables beside the simulated ones, for a terminal and for a page."""

from collections.abc import Sequence

from xinfer_ros.fleet.claims import Claim, claims
from xinfer_ros.fleet.paper_tables import ABLATIONS, TITLE_OF, FleetCase, PaperTables
from xinfer_ros.fleet.report_table import ReportTable, beside
from xinfer_ros.fleet.reproduction import FULL, POLICIES, Reproduction

CELL = 'A cell is: published→simulated, difference.'


def comparison_tables(paper: PaperTables, sim: Reproduction) -> list[ReportTable]:
    """Return every comparison, the verdict on the claims first."""
    fluent = [c for c in paper.attainment_pct if c.workload != 'parcel']
    parcel = [c for c in paper.attainment_pct if c.workload == 'parcel']
    return [
        claims_table(claims(paper, sim)),
        _erc(paper, sim),
        _ablations(paper, sim),
        _arrival_aware(paper, sim),
        _attainment('Table 10: attainment [%], alternating, bursty, multiple', fluent, paper, sim),
        _attainment('Table 11: attainment [%], parcel', parcel, paper, sim),
        _secondary(sim, [*fluent, *parcel]),
        _slack_gate(paper, sim),
        _mae(paper, sim),
    ]


def claims_table(found: Sequence[Claim]) -> ReportTable:
    """Return the verdict on every claim."""
    held = sum(claim.holds for claim in found)
    return ReportTable(
        title=f'Which claims hold in simulation: {held} of {len(found)}',
        columns=('claim of the paper', 'holds if', 'simulated', 'verdict'),
        left=('holds if', 'simulated', 'verdict'),
        rows=tuple(
            (claim.text, claim.rule, claim.found, 'holds' if claim.holds else 'DOES NOT HOLD')
            for claim in found
        ),
        note='Each verdict is computed from the tables below; published numbers are means of '
        'three rounds.',
    )


def _title(policy: str) -> str:
    return TITLE_OF.get(policy, policy)


def _erc(paper: PaperTables, sim: Reproduction) -> ReportTable:
    rows = []
    for workload, published in paper.erc.items():
        for policy in sorted(POLICIES, key=lambda name: -sim.ercs[workload, name, 'paper'].erc):
            by_paper, strict = (sim.ercs[workload, policy, c] for c in ('paper', 'strict'))
            is_published = policy in published
            rows.append(
                (
                    workload,
                    _title(policy),
                    str(published[policy] or 'none') if is_published else '–',
                    _found(by_paper.erc, by_paper.first_failing),
                    _found(strict.erc, strict.first_failing),
                    _number(by_paper.attainment, 100.0, 1),
                    _number(by_paper.tight_attainment, 100.0, 1),
                    _number(by_paper.tight_p999_ms, 1.0, 0),
                    _number(by_paper.min_rate_hz, 1.0, 2),
                    _number(by_paper.mean_rate_hz, 1.0, 2),
                )
            )  # fmt: skip
    return ReportTable(
        title='Effective robot capacity (ERC)',
        columns=(
            'workload', 'policy', 'published', 'simulated', 'strict', 'attainment %', 'tight %',
            'tight P99.9 ms', 'slowest Hz', 'mean Hz',
        ),
        left=('policy',),
        rows=tuple(rows),
        note='Simulated: the largest fleet of which every round, and those of every smaller fleet '
        'tested, has 95 % of its responses on time; "+" where no fleet tested fails. Strict asks '
        'also for 95 % in every budget class, at most 0.5 % later than twice their budget, and '
        'the slowest robot at 90 % of the mean rate. On the right the simulated fleet of that '
        'size: the worst round.',
    )  # fmt: skip


def _found(erc: int, first_failing: int | None) -> str:
    return f'{erc}{"" if first_failing else "+"}' if erc else 'none'


def _number(value: float | None, factor: float, digits: int) -> str:
    return '–' if value is None else f'{factor * value:.{digits}f}'


def _ablations(paper: PaperTables, sim: Reproduction) -> ReportTable:
    return ReportTable(
        title='Table 8: what each part of XInfer is worth [points of attainment]',
        columns=('fleet', 'full %', *(name.replace('_', ' ') for name in ABLATIONS)),
        rows=tuple(
            (
                str(case),
                beside(paper.full_pct[case], sim.attainment_pct(case, FULL)),
                *(beside(row[name], sim.gain(case, name)) for name in ABLATIONS),
            )
            for case, row in paper.gain.items()
        ),
        note=f'Attainment of the full policy less that of the ablation. {CELL}',
    )


def _arrival_aware(paper: PaperTables, sim: Reproduction) -> ReportTable:
    rows = []
    for case, row in paper.arrival_aware.items():
        for place, variant in enumerate(('no_arrival_aware', FULL)):
            tight = 100.0 * sim.mean(case, variant, 'tight_attainment')
            wide = sim.mean(case, variant, 'wide_mean_ms')
            rows.append(
                (
                    str(case),
                    ('without', 'with')[place],
                    beside(row.attainment_pct[place], sim.attainment_pct(case, variant)),
                    beside(row.tight_pct[place], tight),
                    beside(row.wide_mean_ms[place], wide, 0),
                    beside(row.goodput[place], sim.mean(case, variant, 'goodput')),
                )
            )
    return ReportTable(
        title='Table 9: XInfer without and with its check of foreseen arrivals',
        columns=('fleet', 'check', 'overall %', 'tight %', 'wide mean ms', 'goodput 1/s'),
        left=('check',),
        rows=tuple(rows),
        note=CELL,
    )


def _attainment(
    title: str, cases: Sequence[FleetCase], paper: PaperTables, sim: Reproduction
) -> ReportTable:
    def cell(case: FleetCase, policy: str) -> str:
        published = paper.attainment_pct[case].get(policy)
        mean = sum(published) / len(published) if published else None
        return beside(mean, sim.attainment_pct(case, policy))

    return ReportTable(
        title=title,
        columns=('fleet', *(_title(policy) for policy in POLICIES)),
        rows=tuple((str(case), *(cell(case, policy) for policy in POLICIES)) for case in cases),
        note=f'Means of the rounds. {CELL} The last two policies are ours.',
    )


def _secondary(sim: Reproduction, cases: Sequence[FleetCase]) -> ReportTable:
    policies = ('xinfer', 'foresight', 'foresight_shed')

    def cell(case: FleetCase, policy: str) -> str:
        tight = 100.0 * sim.mean(case, policy, 'tight_attainment')
        late = 100.0 * sim.mean(case, policy, 'far_late')
        share = 100.0 * sim.mean(case, policy, 'min_rate_share')
        return f'{tight:.1f} / {late:.2f} / {share:.0f}'

    return ReportTable(
        title='Beside the attainment: who pays for it (simulated)',
        columns=('fleet', *(_title(policy) for policy in policies)),
        rows=tuple((str(case), *(cell(case, policy) for policy in policies)) for case in cases),
        note='A cell is: tight class on time [%] / responses later than twice their budget [%] / '
        "slowest robot's update rate over the mean [%].",
    )


def _slack_gate(paper: PaperTables, sim: Reproduction) -> ReportTable:
    def cells(case: FleetCase) -> tuple[str, ...]:
        published = paper.goodput_difference[case]
        wide = [sim.mean(case, p, 'wide_mean_ms') for p in ('slack_gate', 'xinfer', 'foresight')]
        return (
            str(case),
            beside(published, sim.goodput_difference(case)),
            f'{sim.mean(case, "foresight", "goodput") - sim.mean(case, FULL, "goodput"):+.1f}',
            *(f'{mean:.0f}' for mean in wide),
            f'{sim.wide_reduction_pct(case):+.0f} %',
        )

    return ReportTable(
        title='Goodput and wide latency against Slack-Gate',
        columns=(
            'fleet', 'XInfer over Slack-Gate 1/s', 'foresight over XInfer 1/s',
            'wide ms Slack-Gate', 'wide ms XInfer', 'wide ms foresight', 'XInfer lower by',
        ),
        rows=tuple(cells(case) for case in paper.goodput_difference),
        note=f'Responses on time a second. {CELL} Published at 15 robots: wide mean latency '
        f'{paper.wide_reduction_pct:.0f} % lower.',
    )  # fmt: skip


def _mae(paper: PaperTables, sim: Reproduction) -> ReportTable:
    return ReportTable(
        title='Error of predictions [ms]',
        columns=('robots', 'error'),
        rows=tuple(
            (
                str(n),
                beside(mae, sim.mean(FleetCase(workload='alternating', robots=n), FULL, 'mae_ms')),
            )
            for n, mae in paper.mae_ms.items()
        ),
        note='Mean absolute error of the predicted remaining time of running units, XInfer, '
        f'alternating. {CELL}',
    )
