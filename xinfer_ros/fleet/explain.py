# SPDX-License-Identifier: Apache-2.0
"""Decisions of a simulated round as sentences."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.rounds import RoundTask
from xinfer_ros.sched.decision import Decision, Verdict
from xinfer_ros.sim.scenario import Scenario
from xinfer_ros.sim.simulation import simulate


def explanations(task: RoundTask, count: int, at_s: float | None = None) -> list[str]:
    """
    Return the first decisions that were more than a start in order, as sentences.

    :param at_s: simulated time from which on, the end of the warm-up if None [s]
    :raises ConfigError: if the round ends before that
    """
    from_s = task.round.warm_up_s if at_s is None else at_s
    if from_s >= task.round.end_s:
        raise ConfigError(
            f'decisions from {from_s:g} s on: the round ends at {task.round.end_s:g} s'
        )
    scenario = task.scenario()
    result = simulate(scenario, task.calibration, task.settings, keep_decisions=True)
    zero_ms = _first_arrival_ms(scenario)
    decisions = (
        _later(Decision.of(values), zero_ms)
        for values in result.decisions
        if values[0] >= 1e3 * from_s - zero_ms
    )
    return [decision.explain() for decision in islice(_telling(decisions), count)]


def _later(decision: Decision, by_ms: float) -> Decision:
    """Return a decision with its times counted from the start of the round."""
    times = {
        name: value + by_ms
        for name in ('at_ms', 'foreseen_ms', 'protected_at_ms')
        if (value := getattr(decision, name)) is not None
    }
    return replace(decision, **times)


def _first_arrival_ms(scenario: Scenario) -> float:
    """Return when the first request arrives, the zero of the decisions' times."""
    arrivals = scenario.start_ns + scenario.draws[:, 0, 0].astype(int)
    return float(arrivals.min() / 1e6)


def _telling(decisions: Iterator[Decision]) -> Iterator[Decision]:
    """Yield what is neither a start in order nor an urgent one, each only when it changes."""
    last: dict[int, tuple[object, ...]] = {}
    for decision in decisions:
        facts = (decision.stage, decision.verdict, decision.against)
        urgent = decision.verdict is Verdict.ISSUED_PROTECTED and not decision.protected_at_ms
        plain = urgent or decision.verdict is Verdict.ISSUED
        if not plain and last.get(decision.key) != facts:
            yield decision
        last[decision.key] = facts
