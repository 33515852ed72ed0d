# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a robot, and what would help, in one line."""

from collections import Counter
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import ServerTimes
from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason
from xinfer_ros.observe.levels import (
    RobotFacts,
    ServerFacts,
    Thresholds,
    judge_robot,
    judge_server,
)
from xinfer_ros.observe.robot_window import Asked, Given, RobotFigures

from .viewed_fleet import MS

LIMITS = Thresholds.from_config(ServerConfig())
ASKED = Asked(budget_ns=180 * MS, minimum_period_ns=180 * MS)


def _served(num: int, late: int, **times: int) -> tuple[Given, ...]:
    spent = ServerTimes(**times)
    return tuple(Given(0, Reason.OK, number >= late, spent) for number in range(num))


def _judge(phase: ServerPhase = ServerPhase.READY, **figures: Any) -> Verdict:
    held = RobotFigures(**{'served': _served(50, 0), 'asked': ASKED, **figures})
    return judge_robot(RobotFacts(figures=held, phase=phase, silent_ns=0), LIMITS)


def test_a_robot_on_time_is_well() -> None:
    assert _judge() == Verdict(level=Level.OK, text='on time')
    assert _judge(served=_served(50, 2)).level is Level.OK  # 4 %; from 5 % on


@pytest.mark.parametrize(
    ('times', 'part', 'help_'),
    [
        ({'queue_ns': 150 * MS}, 'waiting for a lane, 150 ms of a budget of 180 ms', 'too many'),
        ({'decode_ns': 90 * MS}, 'decoding, 90 ms', 'decode_threads'),
        ({'action_ns': 120 * MS, 'vit_ns': 10 * MS}, 'computing, 130 ms', 'faster device'),
        ({'server_ns': 70 * MS}, 'between the processes, 70 ms', 'too busy'),
    ],
)
def test_a_late_robot_is_told_where_its_time_goes(
    times: dict[str, int], part: str, help_: str
) -> None:
    verdict = _judge(served=_served(50, 10, **times))
    assert verdict.level is Level.WARN
    assert verdict.text.startswith('late: 20 % of its answers; mostly ')
    assert part in verdict.text
    assert help_ in verdict.text
    assert _judge(served=_served(50, 25, **times)).level is Level.ERROR


def test_a_handful_of_answers_says_nothing() -> None:
    assert _judge(served=_served(4, 4)).level is Level.OK


def test_a_starving_robot_is_told_before_a_late_one() -> None:
    verdict = _judge(
        served=_served(50, 10), ticks=300, starved_ticks=15, network_ns=(40 * MS,) * 50
    )
    assert verdict.level is Level.WARN
    assert verdict.text.startswith('starving: 5 % of its control ticks had no action')
    assert 'the network, 40 ms' in verdict.text
    assert _judge(ticks=300, starved_ticks=30).level is Level.ERROR
    assert _judge(ticks=300, starved_ticks=2).level is Level.OK
    assert _judge(ticks=20, starved_ticks=20).level is Level.OK


def test_a_robot_that_starves_though_its_answers_are_in_time_is_told_to_look_at_itself() -> None:
    starving = {'ticks': 300, 'starved_ticks': 15}
    verdict = _judge(served=_served(50, 0), **starving)
    assert 'its answers are in time, but it asks every 180 ms at most' in verdict.text
    far = _judge(served=_served(50, 0), network_ns=(500 * MS,) * 50, **starving)
    assert 'mostly the network, 500 ms' in far.text


def test_why_a_robot_is_late_is_told_of_the_answers_that_were() -> None:
    fast = _served(90, 0, action_ns=60 * MS)
    slow = _served(10, 10, action_ns=60 * MS, queue_ns=200 * MS)
    verdict = _judge(served=fast + slow, network_ns=(40 * MS,) * 100)
    assert verdict.text.startswith('late: 10 % of its answers; mostly waiting for a lane, 200 ms')


def test_no_answer_is_late_by_the_network_since_deadlines_are_those_of_the_server() -> None:
    verdict = _judge(served=_served(50, 10, queue_ns=30 * MS), network_ns=(40 * MS,) * 50)
    assert 'mostly waiting for a lane, 30 ms' in verdict.text


def test_an_error_goes_before_a_warning() -> None:
    verdict = _judge(served=_served(50, 40), ticks=300, starved_ticks=15)
    assert (verdict.level, verdict.text[:4]) == (Level.ERROR, 'late')


def test_a_slow_network_is_told() -> None:
    verdict = _judge(network_ns=(80 * MS,) * 9)
    assert verdict.level is Level.WARN
    assert verdict.text.startswith('network slow: 80 ms')
    assert _judge(network_ns=(30 * MS,) * 9).level is Level.OK


def test_a_robot_that_gets_nothing_is_told_the_reason() -> None:
    refusals = Counter({Reason.REJECTED_CAPACITY: 12, Reason.SUPERSEDED: 30})
    verdict = _judge(served=(), refusals=refusals)
    assert verdict.level is Level.ERROR
    assert verdict.text.startswith('REJECTED_CAPACITY, 12 times: the device is full')
    assert _judge(refusals=refusals).level is Level.WARN  # now and then it is served
    assert _judge(refusals=Counter({Reason.SUPERSEDED: 9})).level is Level.OK
    assert refusals[Reason.SUPERSEDED] == 30  # judging changes nothing


@pytest.mark.parametrize('phase', [ServerPhase.STARTING, ServerPhase.ERROR])
def test_an_engine_that_is_down_is_told_to_every_robot(phase: ServerPhase) -> None:
    assert _judge(phase).level is Level.ERROR
    assert 'engine' in _judge(phase).text


def test_a_mismatch_is_the_first_thing_to_know() -> None:
    facts = RobotFacts(
        figures=RobotFigures(), phase=ServerPhase.READY, silent_ns=10**10, mismatch='best effort'
    )
    assert judge_robot(facts, LIMITS) == Verdict(level=Level.ERROR, text='best effort')


def test_thresholds_are_settings() -> None:
    strict = Thresholds.from_config(ServerConfig(late_warn_share=0.0, late_error_share=0.01))
    held = RobotFigures(served=_served(50, 1), asked=ASKED)
    facts = RobotFacts(figures=held, phase=ServerPhase.READY, silent_ns=0)
    assert judge_robot(facts, strict).level is Level.ERROR
    none_late = RobotFacts(
        figures=RobotFigures(served=_served(50, 0)), phase=ServerPhase.READY, silent_ns=0
    )
    assert judge_robot(none_late, strict).level is Level.OK


def test_a_warning_that_would_come_after_the_error_never_comes() -> None:
    odd = Thresholds.from_config(ServerConfig(late_warn_share=0.9, late_error_share=0.5))
    held = RobotFigures(served=_served(50, 30), asked=ASKED)
    facts = RobotFacts(figures=held, phase=ServerPhase.READY, silent_ns=0)
    assert judge_robot(facts, odd).level is Level.ERROR


def _server(**changes: Any) -> Verdict:
    facts: dict[str, Any] = {
        'phase': ServerPhase.READY, 'ended_ns': None, 'slow': 1.0, 'refusals': Counter(),
        'served': 4, 'robots': 4,
    }  # fmt: skip
    return judge_server(ServerFacts(**(facts | changes)))


def test_the_server_says_what_is_wrong_with_it() -> None:
    assert _server() == Verdict(level=Level.OK, text='READY')
    assert _server(phase=ServerPhase.ERROR).level is Level.ERROR
    assert _server(phase=ServerPhase.STARTING).level is Level.WARN
    assert _server(phase=ServerPhase.STOPPED).level is Level.WARN
    anew = _server(ended_ns=3 * 10**9)
    assert anew.level is Level.WARN
    assert anew.text.startswith('the engine ended 3.0 s ago, and a new one serves')
    assert 'raise max_robots' in _server(refusals=Counter({Reason.REJECTED_NO_SLOT: 1})).text
    full = _server(refusals=Counter({Reason.REJECTED_CAPACITY: 9}), robots=6)
    assert full.text.startswith('the device is full: 4 of 6 robots are served')
    assert _server(slow=1.6).text.startswith('the device is 1.6 times as slow')
