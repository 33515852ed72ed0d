# SPDX-License-Identifier: Apache-2.0
"""What pictures show of rounds."""

from collections.abc import Sequence

import numpy as np

from xinfer_ros.fleet.plots import Curve, Latencies
from xinfer_ros.fleet.records import DecisionCostRecord, RoundRecord
from xinfer_ros.fleet.rounds import RoundResult


def attainment_curves(records: Sequence[RoundRecord]) -> list[Curve]:
    """Return attainment over the number of robots, one curve a policy [%]."""
    points: dict[str, dict[int, list[float]]] = {}
    for record in records:
        rounds = points.setdefault(record.policy, {}).setdefault(record.robots, [])
        rounds.append(100.0 * record.attainment)
    return [Curve(name=policy, style=policy, points=found) for policy, found in points.items()]


def latencies(results: Sequence[RoundResult]) -> list[Latencies]:
    """Return the latencies of each policy and budget class, rounds weighing the same."""
    found: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    for result in results:
        for curve in result.curves:
            key = (result.record.policy, curve.budget_ms)
            found.setdefault(key, []).append(curve.quantiles_ms)
    shares = np.linspace(0.0, 1.0, 201)
    return [
        Latencies(
            name=policy,
            style=policy,
            budget_ms=budget_ms,
            quantiles_ms=np.quantile(np.concatenate(rounds), shares).tolist(),
        )
        for (policy, budget_ms), rounds in found.items()
    ]


def cost_curves(records: Sequence[DecisionCostRecord]) -> list[Curve]:
    """Return median and 99 % quantile over the number of robots [us]."""
    kinds = dict.fromkeys((r.policy, r.implementation) for r in records)
    return [
        Curve(
            name=f'{policy}, {implementation}, {what}',
            style=policy,
            points={
                r.robots: (getattr(r, name),)
                for r in records
                if (r.policy, r.implementation) == (policy, implementation)
            },
            dashed=name == 'p99_us',
            open_marks=implementation != 'native',
        )
        for policy, implementation in kinds
        for name, what in (('p50_us', 'median'), ('p99_us', '99 %'))
    ]
