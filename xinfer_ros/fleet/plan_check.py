# SPDX-License-Identifier: Apache-2.0
"""A plan held against both simulators at three points each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from xinfer_ros.brain.scenario import steady
from xinfer_ros.brain.simulation import SimulationLog
from xinfer_ros.fleet.brain_runs import DEFAULT, BrainTask, TraceCache, simulate
from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.fleet.erc import MAX_POPULATION, ErcSearch, find_ercs
from xinfer_ros.fleet.plan_brain import BrainTier
from xinfer_ros.fleet.plan_brain_file import Brain
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.fleet.rounds import RoundResult, RoundTask
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World

NS = 1e9
CACHE_SHARES = (0.6, 1.0, 1.4)
SETTLING = 1.0 / 3.0  # share of a run that does not count
UNTUNED = 200  # added to seeds: the controller's settings were chosen on those below 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRecord:
    """
    A planned figure and the simulated one.

    :param deadline_ms: of a point of the VLA tier, None of the others [ms]
    :param digits: behind the point, in a table
    """

    what: str
    point: str
    planned: float
    simulated: float
    deadline_ms: float | None = None
    digits: int = 0

    @property
    def error(self) -> float | None:
        """Return how much more was planned than simulated, as a share; None if nothing was."""
        return self.planned / self.simulated - 1.0 if self.simulated else None


def three_of(values: Sequence[float]) -> list[float]:
    """Return the least, the middle and the largest of some values."""
    ordered = sorted(set(values))
    places = {0, len(ordered) // 2, len(ordered) - 1}
    return [ordered[place] for place in sorted(places)] if ordered else []


@dataclass(frozen=True, slots=True, kw_only=True)
class VlaCheck:
    """
    What deadlines of the VLA tier are simulated with.

    :param round: with the period at which robots ask
    """

    settings: PolicySettings
    calibration: Calibration
    criterion: Criterion
    round: Round
    seeds: tuple[int, ...]

    def tasks(self, deadline_ms: float, robots: int) -> list[RoundTask]:
        """Return the rounds of a fleet."""
        return [
            RoundTask(
                policy=self.settings.name,
                settings=self.settings,
                workload=make_workload(f'constant:{deadline_ms}'),
                robots=robots,
                number=number,
                seed=seed,
                calibration=self.calibration,
                world=World(),
                round=self.round,
            )
            for number, seed in enumerate(self.seeds, 1)
        ]


def check_vla(
    check: VlaCheck,
    planned: Mapping[float, int],
    run: Callable[[Sequence[RoundTask]], Sequence[RoundResult]],
    tell: Callable[[float, int, Sequence[RoundRecord], Sequence[str]], None],
) -> list[CheckRecord]:
    """
    Search for the fleets that were planned for some deadlines.

    :param planned: robots by deadline [ms]
    :param run: simulates rounds
    :param tell: see ``find_ercs``
    """

    def simulate_wave(wave: Sequence[tuple[float, int]]) -> list[list[RoundRecord]]:
        found = iter([r.record for r in run([t for each in wave for t in check.tasks(*each)])])
        return [[next(found) for _ in check.seeds] for _ in wave]

    searches = {
        deadline: (ErcSearch(min(2 * robots + 8, MAX_POPULATION)), check.criterion)
        for deadline, robots in planned.items()
    }
    return [
        CheckRecord(
            what='VLA robots',
            point=f'{deadline:g} ms',
            planned=planned[deadline],
            simulated=record.erc,
            deadline_ms=deadline,
        )
        for deadline, record in find_ercs(searches, simulate_wave, tell).items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainCheck:
    """
    A point of the brain tier that is to be checked.

    :param share: of the cache that the plan is for
    :param seeds: of the runs, ``UNTUNED`` more each
    """

    brain: Brain
    share: float
    seeds: tuple[int, ...]
    minutes: float = 30.0


def check_brain(check: BrainCheck) -> list[CheckRecord]:
    """Plan for a share of the cache, and simulate twice as many robots as it holds."""
    brain = check.brain.with_cache(check.share * check.brain.server.nominal_tokens)
    tier = BrainTier(brain)
    scenario = replace(steady(2 * max(round(tier.admitted), 1)), duration_s=60.0 * check.minutes)
    traces = TraceCache(brain.episodes)
    logs = [
        simulate(
            BrainTask(
                controller=DEFAULT, scenario=scenario, seed=UNTUNED + seed, model=brain.server,
                settings=brain.controller,
            ),
            traces,
        )
        for seed in check.seeds
    ]  # fmt: skip
    point = f'{100 * check.share:g} % of the cache'
    return [
        CheckRecord(
            what='episodes', point=point, planned=tier.admitted, digits=1,
            simulated=fmean(_admitted(log, scenario.duration_s) for log in logs),
        ),
        CheckRecord(
            what='brain calls/s', point=point, planned=tier.calls_per_s(), digits=2,
            simulated=fmean(_calls_per_s(log, scenario.duration_s) for log in logs),
        ),
    ]  # fmt: skip


def _admitted(log: SimulationLog, duration_s: float) -> float:
    from_ns = SETTLING * duration_s * NS
    return fmean(s.state.admitted for s in log.samples if s.at_ns >= from_ns)


def _calls_per_s(log: SimulationLog, duration_s: float) -> float:
    from_ns = SETTLING * duration_s * NS
    return sum(t.at_ns >= from_ns for t in log.turns) / (duration_s * (1.0 - SETTLING))
