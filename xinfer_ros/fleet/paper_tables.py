# SPDX-License-Identifier: Apache-2.0
"""The published tables of XInfer, as values that simulated rounds are laid beside."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

POLICY_OF = {'FIFO': 'fifo', 'EDF': 'edf', 'Slack-Gate': 'slack_gate', 'XInfer': 'xinfer'}
TITLE_OF = {policy: title for title, policy in POLICY_OF.items()}
ABLATIONS: dict[str, dict[str, bool]] = {
    'no_interference_model': {'interference_model': False},
    'strict_gating': {'strict_gating': True},
    'no_arrival_aware': {'arrival_aware': False},
    'entry_only': {'entry_only': True},
    'zero_slack_promotion': {'zero_slack_promotion': True},
}
BURSTY_ROBOTS, MULTIPLE_ROBOTS = 12, 15
Rounds = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FleetCase:
    """A workload and a number of robots: a row of a table."""

    workload: str
    robots: int

    def __str__(self) -> str:
        """Return it as a row is named."""
        return f'{self.workload} {self.robots}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalAware:
    """A row of table 9: each pair without and with the check of foreseen arrivals."""

    attainment_pct: tuple[float, float]
    tight_pct: tuple[float, float]
    wide_mean_ms: tuple[float, float]
    goodput: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTables:
    """
    Published numbers; scheduling policies by our names.

    :param attainment_pct: tables 10 and 11, of each case and policy, one of each round [%]
    :param goodput_difference: table 10, XInfer over Slack-Gate [1/s]
    :param full_pct: table 8, attainment of XInfer [%]
    :param gain: table 8, of each case and ablation: what the part left out is worth [points]
    :param arrival_aware: table 9
    :param erc: of each workload and policy, None if no population tested meets 95 %
    :param mae_ms: of each number of robots
    :param wide_reduction_pct: of the wide mean latency, XInfer under Slack-Gate, 15 robots [%]
    :param decision_us: of each number of robots, median and 99 % quantile [us]
    """

    source: str
    attainment_pct: Mapping[FleetCase, Mapping[str, Rounds]]
    goodput_difference: Mapping[FleetCase, float]
    full_pct: Mapping[FleetCase, float]
    gain: Mapping[FleetCase, Mapping[str, float]]
    arrival_aware: Mapping[FleetCase, ArrivalAware]
    erc: Mapping[str, Mapping[str, int | None]]
    mae_ms: Mapping[int, float]
    wide_reduction_pct: float
    decision_us: Mapping[int, tuple[float, float]]


def load_paper_tables() -> PaperTables:
    """Return the tables that ship with this package."""
    text = (resources.files('xinfer_ros.fleet') / 'data' / 'paper_tables.json').read_text()
    values: dict[str, Any] = json.loads(text)
    cells = {
        **{_case(f'phases_{n}'): row for n, row in values[_TABLE_10].items()},
        _case('bursty'): values['table10_bursty_pct'],
        _case('multiple'): values['table10_multiple_N15_pct'],
        **{_case(f'parcel_{n}'): row for n, row in values['table11_parcel_pct'].items()},
    }
    ablation = _rows(values['table8_ablation_gain_pp'])
    differences = values['table10_goodput_diff_vs_slack_gate']
    return PaperTables(
        source=values['source'],
        attainment_pct={
            case: {POLICY_OF[name]: tuple(rounds) for name, rounds in row.items()}
            for case, row in cells.items()
        },
        goodput_difference={
            _case(f'phases_{name}' if name.isdigit() else name): difference
            for name, difference in differences.items()
        },
        full_pct={case: row[0] for case, row in ablation.items()},
        gain={case: dict(zip(ABLATIONS, row[1:], strict=True)) for case, row in ablation.items()},
        arrival_aware={
            case: ArrivalAware(
                attainment_pct=tuple(row[0]),
                tight_pct=tuple(row[1]),
                wide_mean_ms=tuple(row[2]),
                goodput=tuple(row[3]),
            )
            for case, row in _rows(values['table9_arrival_aware_without_with']).items()
        },
        erc={
            workload: {
                POLICY_OF[name]: erc
                for name, erc in values[f'erc_attainment95_{workload}'].items()
            }
            for workload in ('alternating', 'parcel')
        },
        mae_ms={int(robots): mae for robots, mae in values['prediction_mae_ms'].items()},
        wide_reduction_pct=values['at_15_robots']['wide_mean_latency_reduction_pct'],
        decision_us={
            int(robots): (pair[0], pair[1])
            for robots, pair in values['decision_us_median_p99'].items()
        },
    )


_TABLE_10 = 'table10_alternating_attainment_pct_R1_R2_R3'


def _rows(table: Mapping[str, Any]) -> dict[FleetCase, Any]:
    return {_case(name): row for name, row in table.items() if name != 'columns'}


def _case(name: str) -> FleetCase:
    """Return the case of a row as the paper's file names it, ``phases_18`` or ``bursty``."""
    kind, _, robots = name.partition('_')
    match kind:
        case 'phases':
            return FleetCase(workload='alternating', robots=int(robots))
        case 'bursty':
            return FleetCase(workload='bursty', robots=BURSTY_ROBOTS)
        case 'multiple':
            return FleetCase(workload='multiple', robots=MULTIPLE_ROBOTS)
    return FleetCase(workload=kind, robots=int(robots))
