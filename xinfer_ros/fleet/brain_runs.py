# SPDX-License-Identifier: Apache-2.0
"""Runs of the brain tier in virtual time, and what they come to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controllers.aimd_hits import AimdHits
from xinfer_ros.brain.controllers.aimd_usage import AimdUsage
from xinfer_ros.brain.controllers.open import Open
from xinfer_ros.brain.controllers.static import Static
from xinfer_ros.brain.controllers.working_set import WorkingSet
from xinfer_ros.brain.fairness import jain_index
from xinfer_ros.brain.guards import PreemptionGuard
from xinfer_ros.brain.llm_server import ServerModel
from xinfer_ros.brain.rule import Rule
from xinfer_ros.brain.scenario import DISTURBANCES, BrainScenario, steady
from xinfer_ros.brain.simulation import BrainSimulation, SimulationLog
from xinfer_ros.brain.trace import EpisodeTrace, TraceModel, draw_episode
from xinfer_ros.config.working_set import WorkingSetConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import nearest

NS = 1e9
DEFAULT = 'working_set'
CONTROLLERS = ('open', 'static:K', 'aimd_usage', 'aimd_hits', DEFAULT)
ONSET_WINDOW_S, ONSET_HITS = 120.0, 0.8
RECOVERY_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainTask:
    """
    One run.

    :param controller: a name of CONTROLLERS, with a number for K
    :param model: the LLM server
    :param settings: of the default controller
    """

    controller: str
    scenario: BrainScenario
    seed: int
    model: ServerModel = field(default_factory=ServerModel)
    settings: WorkingSetConfig = field(default_factory=WorkingSetConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainRun:
    """
    What a run came to.

    :param rps: requests answered [1/s]
    :param hits: share of the turns, first ones excepted, that found their whole context cached
    :param jain: Jain's index of the robots' turns from when the last of them has joined
    :param onset_s: start of the first window of 120 s with fewer hits than 80 %, None if there is
        none until the end [s]
    :param parks: episodes parked, each time counted
    :param rates: requests answered in each 10 s [1/s]
    """

    task: BrainTask
    rps: float
    hits: float
    episodes_per_min: float
    jain: float
    onset_s: float | None
    parks: int
    rates: tuple[float, ...]


def rule_of(name: str, settings: WorkingSetConfig | None = None) -> Rule:
    """
    Return the rule of a controller.

    :param settings: of the default one
    :raises ConfigError: if there is none of that name
    """
    kind, colon, number = name.partition(':')
    if kind == 'static' and number.isdecimal() and int(number) > 0:
        return Static(int(number))
    plain: dict[str, Callable[[], Rule]] = {
        'open': Open,
        'aimd_usage': AimdUsage,
        'aimd_hits': AimdHits,
        DEFAULT: partial(WorkingSet, settings=settings),
    }
    if colon or kind not in plain:
        raise ConfigError(f'controller {name!r} is not known; {nearest(name, CONTROLLERS)}')
    return plain[kind]()


def scenario_of(name: str, robots: int | None, minutes: float) -> BrainScenario:
    """
    Return a scenario.

    :param robots: at the start, None for the scenario's own number
    :param minutes: how long it is [min]
    :raises ConfigError: if it is not known, or nothing of it would happen
    """
    if name == 'steady':
        return replace(steady(robots or 32), duration_s=60.0 * minutes)
    if name not in DISTURBANCES:
        known = ('steady', *DISTURBANCES)
        raise ConfigError(f'scenario {name!r} is not known; {nearest(name, known)}')
    usual = DISTURBANCES[name]
    scenario = replace(usual, robots=robots or usual.robots, duration_s=60.0 * minutes)
    change = scenario.changes[0]
    if change.at_s >= scenario.duration_s:
        raise ConfigError(
            f'scenario {name} begins to differ from steady at {change.at_s / 60.0:g} min; '
            f'{minutes:g} min end before that'
        )
    if change.robots is not None and change.robots <= scenario.robots:
        raise ConfigError(
            f'scenario {name} makes the fleet {change.robots} robots; {scenario.robots} at the '
            'start are as many already'
        )
    return scenario


class TraceCache:
    """Draws each episode once for all the runs that need it."""

    def __init__(self, model: TraceModel | None = None) -> None:
        self.model = model or TraceModel()
        self._drawn: dict[tuple[int, int, int], EpisodeTrace] = {}

    def draw(self, seed: int, robot: int, number: int) -> EpisodeTrace:
        """Return an episode."""
        key = seed, robot, number
        if key not in self._drawn:
            self._drawn[key] = draw_episode(self.model, seed, robot, number)
        return self._drawn[key]


def simulate(task: BrainTask, traces: TraceCache) -> SimulationLog:
    """
    Run a task and return everything that happened.

    :raises ConfigError: if its controller is not known
    """
    rule = rule_of(task.controller, task.settings)
    guard = None if rule.name == 'open' else PreemptionGuard()
    return BrainSimulation(
        task.scenario,
        EpisodeAdmission(rule, guard),
        task.model,
        partial(traces.draw, task.seed),
        traces.model.max_context,
    ).run()


def run_tasks(tasks: Sequence[BrainTask]) -> list[BrainRun]:
    """Run tasks one after the other and return what they came to."""
    traces = TraceCache()
    return [measured(task, simulate(task, traces)) for task in tasks]


def measured(task: BrainTask, log: SimulationLog) -> BrainRun:
    """Return what a run came to."""
    duration_s = task.scenario.duration_s
    times = np.array([turn.at_ns for turn in log.turns]) / NS
    again = np.array([turn.hit for turn in log.turns if turn.hit is not None])
    counts, _ = np.histogram(times, np.arange(0.0, duration_s + 1.0, 10.0))
    return BrainRun(
        task=task,
        rps=len(times) / duration_s,
        hits=float(again.mean()) if len(again) else 1.0,
        episodes_per_min=60.0 * len(log.episode_ends) / duration_s,
        jain=jain_index(turns_of(log, task.scenario)),
        onset_s=onset_of(log, duration_s),
        parks=log.parks,
        rates=tuple(float(count) / 10.0 for count in counts),
    )


def turns_of(log: SimulationLog, scenario: BrainScenario) -> list[float]:
    """Return the turns of each robot that joins, from when the last of them has done so."""
    joins_s = [at_s for at_s in scenario.joins_s if at_s < scenario.duration_s]
    turns = [0.0] * len(joins_s)
    for turn in log.turns:
        turns[turn.robot] += turn.at_ns >= NS * joins_s[-1]
    return turns


def onset_of(log: SimulationLog, duration_s: float) -> float | None:
    """Return when thrashing began, None if it did not until the end [s]."""
    seen = [(turn.at_ns / NS, turn.hit) for turn in log.turns if turn.hit is not None]
    times = np.array([at for at, _ in seen])
    sums = np.concatenate([[0], np.cumsum([hit for _, hit in seen])])
    for start in np.arange(0.0, duration_s - ONSET_WINDOW_S + 1.0, 10.0):
        first, last = np.searchsorted(times, (start, start + ONSET_WINDOW_S))
        if last > first and sums[last] - sums[first] < ONSET_HITS * (last - first):
            return float(start)
    return None


def recovery_of(run: BrainRun, from_s: float, level: float) -> float | None:
    """
    Return how long after a change the requests come at a level again.

    :param level: that a window of a minute must reach [1/s]
    :returns: until the start of the first such window, None if there is none [s]
    """
    length = int(RECOVERY_WINDOW_S / 10.0)
    rates, start = np.array(run.rates), int(from_s / 10.0)
    for first in range(start, len(rates) - length + 1):
        if rates[first : first + length].mean() >= level:
            return 10.0 * (first - start)
    return None


def level_of(runs: Sequence[BrainRun], from_s: float, to_s: float) -> float:
    """Return the mean rate of some runs between two times [1/s]."""
    return float(
        np.mean([np.mean(run.rates[int(from_s / 10.0) : int(to_s / 10.0)]) for run in runs])
    )
