# SPDX-License-Identifier: Apache-2.0
"""A plan: how many robots the VLA tier and the brain tier hold, and which of them binds."""

from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.plan_brain import BrainTier
from xinfer_ros.fleet.plan_vla import BudgetMix, VlaTier

MAX_BUDGETS = 8  # of a workload that get a row of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionHorizon:
    """
    How many rows robots run before the next chunk takes over.

    :param steps: ``s`` [steps]
    :param spacing_ms: ``Δ`` [ms]
    """

    steps: int
    spacing_ms: float

    @property
    def period_ms(self) -> float:
        """Return ``TE``, at which robots ask: once for the rows that they run [ms]."""
        return self.steps * self.spacing_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainUse:
    """
    What robots do with their brains.

    :param share: of the robots that run an episode at a time
    :param calls_per_vla_call: brain calls for each VLA call if the VLA is a tool of the brain, so
        that robots stand still while it thinks; None: robots move all the time
    :param chunks_per_vla_call: chunks of such a call, 1 as RPent has it
    """

    share: float = 1.0
    calls_per_vla_call: float | None = None
    chunks_per_vla_call: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """
    What both tiers hold at one deadline and execution horizon.

    :param deadline_ms: response budget, None for a workload of several [ms]
    :param period_ms: ``TE`` [ms]
    :param vla_per_s: responses that the VLA tier gives on time [1/s]
    :param vla_robots: robots that it holds
    :param brain_robots: robots of which every episode has a place, None without brains
    :param brain_calls_per_s: calls of those episodes [1/s]
    :param robots: the fleet, the smaller of both
    :param binds: ``VLA``, ``brain`` or ``both``
    :param more: robots that the other tier would hold beyond that
    """

    budgets: str
    deadline_ms: float | None
    execution_steps: int
    spacing_ms: float
    period_ms: float
    vla_per_s: float
    vla_robots: int
    brain_robots: int | None
    brain_calls_per_s: float | None
    robots: int
    binds: str
    more: int


class FleetPlan:
    """
    Puts the tiers side by side: a fleet is as large as the smaller of them.

    :param brain: None if robots have none
    """

    def __init__(self, vla: VlaTier, brain: BrainTier | None, use: BrainUse) -> None:
        self._vla, self.brain, self._use = vla, brain, use

    def record(self, mix: BudgetMix, horizon: ExecutionHorizon) -> PlanRecord:
        """Return what both tiers hold."""
        calls_per_s, thinking_ms = self._thinking(mix, horizon)
        vla = self._vla.robots(mix, horizon.period_ms, thinking_ms)
        brain = self.brain.robots(self._use.share) if self.brain is not None else None
        robots = vla if brain is None else min(vla, brain)
        budgets_ms = list(mix.shares)
        return PlanRecord(
            budgets=mix.name,
            deadline_ms=budgets_ms[0] if len(budgets_ms) == 1 else None,
            execution_steps=horizon.steps,
            spacing_ms=horizon.spacing_ms,
            period_ms=horizon.period_ms,
            vla_per_s=1e3 * self._vla.per_ms(mix, horizon.period_ms, thinking_ms),
            vla_robots=vla,
            brain_robots=brain,
            brain_calls_per_s=calls_per_s,
            robots=robots,
            binds='both' if vla == brain else 'VLA' if robots == vla else 'brain',
            more=max(vla, brain or 0) - robots,
        )

    def _thinking(self, mix: BudgetMix, horizon: ExecutionHorizon) -> tuple[float | None, float]:
        """
        Return the calls of all episodes [1/s], and for how long a brain thinks for a chunk [ms].

        An episode calls ``calls`` times, ``K / X`` each, then its robot executes ``chunks``.
        """
        if self.brain is None:
            return None, 0.0
        calls, chunks = self._use.calls_per_vla_call, self._use.chunks_per_vla_call
        if calls is None:
            return self.brain.calls_per_s(), 0.0
        away_s = chunks * mix.interval_ms(horizon.period_ms) / 1e3 / calls
        rate = self.brain.calls_per_s(away_s)
        turn_s = self.brain.admitted / rate - away_s
        return rate, calls * turn_s * 1e3 / chunks


def constant(budget_ms: float) -> BudgetMix:
    """Return a fleet of one response budget [ms]."""
    return BudgetMix(name=f'{budget_ms:g} ms', cycles_ms=((budget_ms,),))


def budgets_of(mix: BudgetMix) -> list[BudgetMix]:
    """Return a workload, then each of its budgets alone, at most ``MAX_BUDGETS`` of them."""
    budgets_ms = list(mix.shares)
    if len(budgets_ms) == 1:
        return [constant(budgets_ms[0])]
    count = min(len(budgets_ms), MAX_BUDGETS)
    chosen = [budgets_ms[round(i * (len(budgets_ms) - 1) / (count - 1))] for i in range(count)]
    return [mix, *map(constant, chosen)]


def horizons_of(steps: Sequence[int], spacing_ms: float) -> list[ExecutionHorizon]:
    """
    Return execution horizons.

    :raises ConfigError: if robots would ask more often than each ms, or less than each minute
    """
    horizons = [ExecutionHorizon(steps=each, spacing_ms=spacing_ms) for each in steps]
    for each in horizons:
        if not 1.0 <= each.period_ms <= 60_000.0:
            raise ConfigError(
                f'{each.steps} steps of {spacing_ms:g} ms: robots would ask every '
                f'{each.period_ms:g} ms; 1 to 60000 is allowed'
            )
    return horizons
