# SPDX-License-Identifier: Apache-2.0
"""A fleet of episodes in virtual time."""

from dataclasses import replace
from functools import partial

import pytest

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Gauges
from xinfer_ros.brain.controllers.open import Open
from xinfer_ros.brain.controllers.static import Static
from xinfer_ros.brain.controllers.working_set import WorkingSet
from xinfer_ros.brain.llm_server import ServerModel
from xinfer_ros.brain.rule import Rule
from xinfer_ros.brain.scenario import DISTURBANCES, BrainScenario, Change, steady
from xinfer_ros.brain.simulation import BrainSimulation, SimulationLog
from xinfer_ros.brain.trace import TraceModel, draw_episode

TRACE = TraceModel()


def simulate(
    rule: Rule, scenario: BrainScenario, minutes: float, model: ServerModel | None = None
) -> SimulationLog:
    return BrainSimulation(
        replace(scenario, duration_s=60.0 * minutes),
        EpisodeAdmission(rule, None),
        model or ServerModel(),
        partial(draw_episode, TRACE, 1),
        TRACE.max_context,
    ).run()


def rate(log: SimulationLog, from_s: float, to_s: float) -> float:
    return sum(from_s * 1e9 <= t.at_ns < to_s * 1e9 for t in log.turns) / (to_s - from_s)


def hits(log: SimulationLog) -> float:
    again = [turn.hit for turn in log.turns if turn.hit is not None]
    return sum(again) / len(again)


def test_twenty_robots_need_no_controller() -> None:
    """Published: 2.4 requests/s."""
    log = simulate(Open(), steady(20), 10)
    assert rate(log, 120, 600) == pytest.approx(2.4, abs=0.2)
    assert hits(log) > 0.99


def test_too_many_robots_thrash_and_the_default_controller_keeps_the_rate() -> None:
    """Published: 0.48 to 0.75 requests/s at 32 robots."""
    thrashing = simulate(Open(), steady(32), 15)
    assert rate(thrashing, 420, 900) < 0.75
    kept = simulate(WorkingSet(), steady(32), 15)
    assert rate(kept, 420, 900) > 2.2
    assert hits(kept) > 0.97


def test_run_is_the_same_each_time() -> None:
    first, second = (simulate(WorkingSet(), steady(24), 3) for _ in range(2))
    assert first.turns == second.turns
    assert first.samples == second.samples


def test_fixed_number_is_kept() -> None:
    log = simulate(Static(5), steady(12), 3)
    assert max(sample.state.admitted for sample in log.samples) == 5
    assert log.parks == 0
    assert all(turn.hit is not False for turn in log.turns)


def test_robots_join_when_the_scenario_says_so() -> None:
    scenario = replace(DISTURBANCES['robots'], changes=(Change(at_s=60.0, robots=24),))
    log = simulate(Open(), scenario, 3)
    early = {turn.robot for turn in log.turns if turn.at_ns < 60e9}
    assert early <= set(range(16))
    assert {turn.robot for turn in log.turns} == set(range(24))


def test_appended_tokens_grow_when_the_scenario_says_so() -> None:
    plain = simulate(Static(4), steady(4), 5)
    longer = replace(steady(4), changes=(Change(at_s=0.0, appended=2.0),))
    grown = simulate(Static(4), longer, 5)
    of_turn = {(t.robot, t.number): t.prompt for t in plain.turns if t.number == 5}
    for turn in grown.turns:
        if turn.number == 5 and turn.robot in {robot for robot, _ in of_turn}:
            assert turn.prompt > 1.15 * of_turn[turn.robot, 5]
            break
    else:
        pytest.fail('nobody had a sixth turn')


def test_estimate_follows_a_capacity_that_drops() -> None:
    """A first controller took over five minutes to see it."""
    scenario = replace(steady(32), changes=(Change(at_s=300.0, capacity=0.6),))
    log = simulate(WorkingSet(), scenario, 7)
    true_tokens = ServerModel().attention_blocks(0.6) * 784
    estimates = [
        sample.state.estimate_tokens or 0 for sample in log.samples if sample.at_ns > 390e9
    ]
    assert max(estimates) < 1.12 * true_tokens


def test_rate_is_back_soon_after_a_loss_of_capacity() -> None:
    """A first controller did 1.0 requests/s for five minutes; K = 13 holds 2.0."""
    log = simulate(WorkingSet(), DISTURBANCES['capacity'], 13)
    assert rate(log, 660, 780) > 1.7


class WithoutMetrics(EpisodeAdmission):
    """Never hears what the server tells of itself."""

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        super().metrics(None, now_ns)


def test_default_controller_finds_the_cache_by_calls_alone() -> None:
    """Nor does anybody tell the size of a block: taken for 16, it came to 0.3 requests/s."""
    scenario = replace(steady(32), duration_s=900.0)
    controller = WithoutMetrics(WorkingSet(), None)
    draw = partial(draw_episode, TRACE, 1)
    log = BrainSimulation(scenario, controller, ServerModel(), draw, TRACE.max_context).run()
    assert rate(log, 600, 900) > 2.0
    assert hits(log) > 0.97


def test_partial_hits_keep_the_beginning_of_a_lost_context() -> None:
    soft = simulate(Open(), steady(32), 8, ServerModel(partial_hits=True))
    cached = [turn.cached for turn in soft.turns if turn.hit is False]
    assert cached
    assert max(cached) > 30_000
