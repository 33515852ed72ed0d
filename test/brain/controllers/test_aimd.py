# SPDX-License-Identifier: Apache-2.0
"""The controllers that the default is compared with."""

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Gauges
from xinfer_ros.brain.controllers.aimd_hits import AimdHits
from xinfer_ros.brain.controllers.aimd_usage import AimdUsage

from ..fleet_of_turns import NS, ByHand


def test_usage_raises_the_number_while_it_is_low_and_cuts_it_when_it_is_high() -> None:
    rule = AimdUsage(start=8, target=0.9, factor=0.5, period_ns=10 * NS)
    for second in range(31):
        rule.metrics(Gauges(usage=0.4), second * NS)
    assert rule.limit == 11
    for second in range(31, 41):
        rule.metrics(Gauges(usage=0.95), second * NS)
    assert rule.limit == 5


def test_usage_that_is_not_told_changes_nothing() -> None:
    rule = AimdUsage(start=8)
    for second in range(1000):
        rule.metrics(None if second % 2 else Gauges(), second * NS)
    assert rule.limit == 8


def test_lost_prefixes_cut_the_number_and_rewritten_ones_do_not() -> None:
    for kept, cached, rises in ((1.0, 900, True), (1.0, 100, False), (0.1, 100, True)):
        rule = AimdHits(start=5, factor=0.7, period_ns=2 * NS)
        fleet = ByHand(EpisodeAdmission(rule, None))
        for name in 'abcdef':
            fleet.arrive(name)
        fleet.turn('a', 1000, 0)
        for _ in range(2):
            fleet.turn('a', 1000, cached, kept=kept)
        assert (rule.limit > 5) == rises
        assert (rule.limit < 5) != rises


def test_number_that_keeps_nobody_out_is_not_raised() -> None:
    """After a quiet night it admitted a fleet of any size at once."""
    rule = AimdHits(start=5, period_ns=2 * NS)
    fleet = ByHand(EpisodeAdmission(rule, None))
    fleet.arrive('a')
    for _ in range(100):
        fleet.turn('a', 1000, 1000)
    assert rule.limit == 5
