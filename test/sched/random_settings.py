# SPDX-License-Identifier: Apache-2.0
"""Random settings of every scheduling policy, by the name of a case."""

from collections.abc import Callable
from random import Random
from typing import Any

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sched.settings_base import PolicySettings

Changes = Callable[[Random], dict[str, Any]]


def _plain(random: Random) -> dict[str, Any]:
    return {'learning_rate': random.choice([0.0, 0.02, 0.3])}


def _limits(random: Random) -> dict[str, Any]:
    limits = tuple(random.randint(1, 6) for _ in Stage)
    return {'lane_limits': limits, 'interference_model': random.random() < 0.8}


def _gate(random: Random) -> dict[str, Any]:
    return _limits(random) | {'threshold_ms': random.choice([0.0, random.uniform(5.0, 120.0)])}


def _foresight(random: Random) -> dict[str, Any]:
    choose = random.choice
    return {
        'learning_rate': choose([0.0, 0.02, 0.3]),
        'tolerance': choose([0.0, 0.03, 0.3]),
        'tries': random.randint(0, 4),
        'shed_at': choose([0.05, 0.5, 1.0]),
        'shed_gain': choose([0.02, 0.3]),
        'shed_share': choose([0.005, 0.05, 0.5]),
        'shed_burst': choose([0.0, 1.0, 20.0]),
        'spare_ms': choose([0.0, 100.0, 1000.0]),
        'hopeless_share': choose([0.0, 0.9, 2.0]),
        'pacing': choose([True, True, False]),
        'pacing_spread': choose([0.0, 0.05, 0.3]),
        'pacing_step_ms': choose([1.0, 5.0]),
        'gone_ms': choose([50.0, 500.0]),
    }


def _changed(**changes: bool) -> Changes:
    return lambda random: _plain(random) | changes


def _narrow(others: Changes) -> Changes:
    """Return draws with few states, or with one stage at a time."""
    return lambda random: (
        others(random)
        | {'stage_overlap': random.random() < 0.5, 'max_held': random.choice([0, 1, 2, 5])}
    )


def _batches(random: Random) -> dict[str, Any]:
    return {'max_batch': random.choice([1, 2, 3, 5, 8])}


def _waiting(random: Random) -> dict[str, Any]:
    return _batches(random) | {'wait_ms': random.choice([0.0, 5.0, random.uniform(0.0, 60.0)])}


def _rounds(random: Random) -> dict[str, Any]:
    return {
        'group': random.randint(1, 8),
        'publish_at_barrier': random.random() < 0.6,
        'context_share': random.choice([0.0, random.uniform(0.1, 0.9)]),
    }


def _ahead(random: Random) -> dict[str, Any]:
    choose = random.choice
    return {
        'max_batch': choose([1, 2, 3, 5]),
        'learning_rate': choose([0.0, 0.02]),
        'depth': choose([1, 1, 2]),
        'objective': choose(['starvation', 'starvation', 'steps', 'page']),
        'window': choose([0.0, 1.1, 4.0]),
        'fast_weight': choose([1.0, 5.0, 0.0]),
        'tier_horizon_ms': choose([0.0, 300.0, 500.0]),
        'protection': random.random() < 0.7,
        'fairness': choose([0.5, 1.0, 2.0]),
        'least_share': choose([0.02, 0.3]),
        'flat': choose([0.5, 1.5]),
        'bonus': choose([0.0, 0.06]),
        'floor': choose([0.0, 0.1]),
    }


# name of a case: the scheduling policy and what of its settings is drawn
CASES: dict[str, tuple[str, Changes]] = {
    'fifo': ('fifo', _plain),
    'edf': ('edf', _limits),
    'slack_gate': ('slack_gate', _gate),
    'xinfer': ('xinfer', _plain),
    'xinfer without interference': ('xinfer', _changed(interference_model=False)),
    'xinfer with strict gating': ('xinfer', _changed(strict_gating=True)),
    'xinfer not arrival-aware': ('xinfer', _changed(arrival_aware=False)),
    'xinfer at the entry only': ('xinfer', _changed(entry_only=True)),
    'xinfer with zero-slack promotion': ('xinfer', _changed(zero_slack_promotion=True)),
    'foresight': ('foresight', _foresight),
    'foresight without interference': ('foresight', _changed(interference_model=False)),
    'foresight_shed': ('foresight_shed', _foresight),
    'serial': ('serial', _plain),
    'dynamic_batch': ('dynamic_batch', _waiting),
    'robion': ('robion', _rounds),
    'round_robin': ('round_robin', _batches),
    'armory_edf': ('armory_edf', _batches),
    'lookahead': ('lookahead', _ahead),
    'dynamic_batch with narrow lanes': ('dynamic_batch', _narrow(_waiting)),
    'robion with narrow lanes': ('robion', _narrow(_rounds)),
    'lookahead with narrow lanes': ('lookahead', _narrow(_ahead)),
    'fifo with narrow lanes': ('fifo', _narrow(_plain)),
    'slack_gate with narrow lanes': ('slack_gate', _narrow(_gate)),
    'xinfer with narrow lanes': ('xinfer', _narrow(_plain)),
    'foresight with narrow lanes': ('foresight', _narrow(_foresight)),
}


def random_settings(random: Random, device: Calibration, case: str) -> PolicySettings:
    """Return settings of a case for a device."""
    policy, changes = CASES[case]
    return policy_settings(policy, device, **changes(random))
