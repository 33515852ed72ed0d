# SPDX-License-Identifier: Apache-2.0
"""Records of rounds that were never simulated, for the tests of criteria, searches and pages."""

from typing import Any

from xinfer_ros.fleet.paper_tables import PaperTables
from xinfer_ros.fleet.records import ErcRecord, RoundRecord
from xinfer_ros.fleet.reproduction import POLICIES, Reproduction, wanted_for
from xinfer_ros.sim.scenario import Round


def round_record(**changes: Any) -> RoundRecord:
    """Return the record of a good round of 18 robots."""
    return RoundRecord(
        **{
            'policy': 'xinfer',
            'workload': 'alternating',
            'robots': 18,
            'round': 1,
            'seed': 1,
            'calibration': 'paper',
            'attainment': 0.99,
            'goodput': 80.0,
            'wide_mean_ms': 200.0,
            'p50_ms': 100.0,
            'p99_ms': 300.0,
            'min_rate_hz': 4.5,
            'mae_ms': 2.5,
            'tight_attainment': 0.98,
            'least_class_attainment': 0.98,
            'tight_p999_ms': 110.0,
            'far_late': 0.0,
            'min_rate_share': 0.97,
            'mean_rate_hz': 4.6,
            'responses': 14_000,
            'real_time_factor': 500.0,
            'starvation': 0.001,
            'fairness': 0.999,
            'fast_starvation': None,
            'slow_starvation': None,
            'steps_per_device_s': None,
            'mirror_error_steps': None,
            **changes,
        }
    )


def erc_record(erc: int, **changes: Any) -> ErcRecord:
    """Return the record of a search that found a capacity."""
    return ErcRecord(
        **{
            'policy': 'xinfer',
            'workload': 'alternating',
            'criterion': 'paper',
            'erc': erc,
            'first_failing': erc + 1,
            'rounds': 3,
            'calibration': 'paper',
            'attainment': 0.96 if erc else None,
            'tight_attainment': 0.93 if erc else None,
            'tight_p999_ms': 130.0 if erc else None,
            'far_late': 0.0 if erc else None,
            'min_rate_hz': 4.2 if erc else None,
            'min_rate_share': 0.96 if erc else None,
            'mean_rate_hz': 4.4 if erc else None,
            'passing': tuple(range(1, erc + 1)),
            'failing': (erc + 1,),
            'faults': ('94.0 % on time, 95 % is needed',),
            **changes,
        }
    )


def perfect_reproduction(paper: PaperTables) -> Reproduction:
    """Return a reproduction that agrees with every published number."""
    rounds = {}
    for case, variant in wanted_for(paper):
        attainment = paper.full_pct.get(case, 97.0)
        published = paper.attainment_pct.get(case, {}).get(variant)
        if published and (variant != 'xinfer' or case not in paper.gain):
            attainment = sum(published) / len(published)
        if variant in paper.gain.get(case, {}):
            attainment = paper.full_pct[case] - paper.gain[case][variant]
        gate = variant == 'slack_gate'
        rounds[case, variant] = [
            round_record(
                policy=variant,
                workload=case.workload,
                robots=case.robots,
                attainment=attainment / 100.0,
                goodput=80.0 - (paper.goodput_difference.get(case, 0.0) if gate else 0.0),
                wide_mean_ms=300.0 if gate else 200.0,
                mae_ms=paper.mae_ms.get(case.robots),
            )
        ]
    ercs = {
        (workload, policy, criterion): erc_record(
            row.get(policy, 20) or 0, policy=policy, workload=workload, criterion=criterion
        )
        for workload, row in paper.erc.items()
        for policy in POLICIES
        for criterion in ('paper', 'strict')
    }
    return Reproduction(
        rounds=rounds, ercs=ercs, calibration='paper', round=Round(), seeds=(1, 2, 3)
    )
