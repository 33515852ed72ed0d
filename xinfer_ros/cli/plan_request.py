# SPDX-License-Identifier: Apache-2.0
"""What the arguments of ``xinfer plan`` ask for."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import names
from xinfer_ros.cli.simulation import settings_of
from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from xinfer_ros.fleet.criterion import Criterion
    from xinfer_ros.fleet.plan import BrainUse, ExecutionHorizon, FleetPlan
    from xinfer_ros.fleet.plan_brain_file import Brain
    from xinfer_ros.fleet.plan_vla import BudgetMix, VlaTier
    from xinfer_ros.predict.calibration import Calibration
    from xinfer_ros.sched.settings_base import PolicySettings

MAX_HORIZONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the arguments ask for."""

    calibration: 'Calibration'
    settings: 'PolicySettings'
    criterion: 'Criterion'
    vla: 'VlaTier'
    brain: 'Brain | None'
    use: 'BrainUse'
    mixes: 'Sequence[BudgetMix]'
    horizons: 'Sequence[ExecutionHorizon]'

    @property
    def title(self) -> str:
        """Return the first line of table and picture."""
        return (
            f'Plan: {self.settings.name} on {self.calibration.name}, criterion '
            f'{self.criterion.name}'
        )

    def note(self, plan: 'FleetPlan') -> str:
        """Return what the figures are of."""
        thinking = self.use.calls_per_vla_call is not None
        interval = 'max(TE, budget)' + (' and what its brain thinks for it' if thinking else '')
        vla = (
            f'VLA tier: responses/s on time times the interval of a robot, {interval}; bounds '
            'from the calibration.'
        )
        if self.brain is None or plan.brain is None:
            return vla
        calls_per_s = plan.record(self.mixes[0], self.horizons[0]).brain_calls_per_s
        return (
            f'{vla} Brain tier: {plan.brain.admitted:.1f} episodes fit '
            f'{self.brain.cache_tokens:,} tokens; they call {calls_per_s:.2f} times a second.'
        )


def plan_request(arguments: argparse.Namespace) -> PlanRequest:
    """
    Return what the arguments ask for.

    :raises ConfigError: if one of them is wrong
    """
    from xinfer_ros.fleet.criterion import parse_criterion
    from xinfer_ros.fleet.plan import BrainUse, horizons_of
    from xinfer_ros.fleet.plan_vla import VlaTier
    from xinfer_ros.predict.calibration import load_calibration

    calibration = load_calibration(arguments.calibration)
    settings = settings_of(_policy(arguments.policy), calibration, arguments.changes)
    criterion = parse_criterion(arguments.criterion)
    if len(arguments.execution_steps) > MAX_HORIZONS:
        raise ConfigError(
            f'--execution-steps has {len(arguments.execution_steps)} numbers; {MAX_HORIZONS} at '
            'most are put side by side'
        )
    if arguments.chunks_per_vla_call > 1 and arguments.calls_per_vla_call is None:
        raise ConfigError(
            '--chunks-per-vla-call is of a VLA that is a tool: give --calls-per-vla-call too'
        )
    return PlanRequest(
        calibration=calibration,
        settings=settings,
        criterion=criterion,
        vla=VlaTier(settings, calibration, criterion),
        brain=_brain(arguments),
        use=BrainUse(
            share=arguments.brain_share,
            calls_per_vla_call=arguments.calls_per_vla_call,
            chunks_per_vla_call=arguments.chunks_per_vla_call,
        ),
        mixes=_mixes(arguments.budgets),
        horizons=horizons_of(arguments.execution_steps, arguments.spacing_ms),
    )


def _policy(text: str) -> str:
    from xinfer_ros.sched.settings import POLICIES

    chosen = names(text, tuple(POLICIES), 'scheduling policy')
    if len(chosen) > 1:
        raise ConfigError(f'--policy {text}: a plan is for one scheduling policy')
    return chosen[0]


def _mixes(text: str) -> 'list[BudgetMix]':
    """Return deadlines, or a workload with its budgets."""
    from xinfer_ros.fleet.plan import budgets_of
    from xinfer_ros.fleet.plan_vla import mix_of
    from xinfer_ros.fleet.trace import load_workload

    parts = [part.strip() for part in text.split(',')]
    if all(part[:1].isdigit() or part[:1] == '.' for part in parts):
        workloads = [load_workload(f'constant:{part}') for part in dict.fromkeys(parts)]
        return [mix for workload in workloads for mix in budgets_of(mix_of(workload))]
    return budgets_of(mix_of(load_workload(text)))


def _brain(arguments: argparse.Namespace) -> 'Brain | None':
    from xinfer_ros.fleet.plan_brain_file import Brain, load_brain

    if arguments.no_brain:
        for name in ('brain', 'cache_tokens', 'calls_per_vla_call'):
            if getattr(arguments, name) is not None:
                raise ConfigError(
                    f'--{name.replace("_", "-")} is of a brain; leave it or --no-brain out'
                )
        return None
    brain = Brain() if arguments.brain is None else load_brain(arguments.brain)
    return brain if arguments.cache_tokens is None else brain.with_cache(arguments.cache_tokens)
