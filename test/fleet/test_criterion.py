# SPDX-License-Identifier: Apache-2.0
"""When a fleet counts as served."""

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import PAPER, STRICT, parse_criterion

from .fake_rounds import round_record


def test_paper_asks_for_95_percent_in_every_round() -> None:
    good = [round_record(attainment=0.95), round_record(attainment=0.97)]
    assert PAPER.passes(good)
    assert not PAPER.passes([*good, round_record(attainment=0.9499)])


def test_paper_does_not_look_at_classes_or_rates() -> None:
    assert PAPER.passes(
        [round_record(least_class_attainment=0.5, far_late=0.05, min_rate_share=0.1)]
    )


@pytest.mark.parametrize(
    ('change', 'fault'),
    [
        ({'attainment': 0.94}, '94.0 % on time, 95 % is needed'),
        ({'least_class_attainment': 0.93}, '93.0 % of a budget class on time, 95 % is needed'),
        ({'far_late': 0.006}, '0.60 % later than twice their budget, 0.5 % is allowed'),
        ({'min_rate_share': 0.89}, '89.0 % of the mean rate, 90 % is needed'),
    ],
)
def test_strict_tells_what_the_worst_round_misses(change: dict[str, float], fault: str) -> None:
    good = round_record(least_class_attainment=0.95, far_late=0.005, min_rate_share=0.9)
    assert STRICT.passes([good])
    assert STRICT.faults([good, round_record(**change)]) == [fault]


def test_share_and_latency_are_free_to_choose() -> None:
    assert parse_criterion('attainment:0.9').passes([round_record(attainment=0.9)])
    assert not parse_criterion('attainment:0.9').passes([round_record(attainment=0.899)])
    median = parse_criterion('p50:150')
    assert median.passes([round_record(p50_ms=150.0, attainment=0.1)])
    assert median.faults([round_record(p50_ms=151.0)]) == [
        'median latency 151 ms, 150 ms is allowed'
    ]
    assert parse_criterion('strict') is STRICT


@pytest.mark.parametrize(
    ('text', 'part'),
    [
        ('papr', 'known: paper, strict, attainment:SHARE'),
        ('p95:100', 'is not known'),
        ('p50', 'is not known'),
        ('p50:fast', 'is not known'),
        ('p50:0', 'from 0 to 60000 ms'),
        ('starved:1', 'a share from 0 to 1'),
        ('attainment:95', 'a share from 0 to 1 is needed, as 0.9'),
        ('attainment:nan', 'a share from 0 to 1'),
    ],
)
def test_unknown_criterion_is_refused_with_the_remedy(text: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        parse_criterion(text)


def test_starvation_is_that_of_the_worst_tier() -> None:
    starved = parse_criterion('starved:0.05')
    assert starved.passes([round_record(starvation=0.05, attainment=0.1)])
    faults = starved.faults([round_record(), round_record(fast_starvation=0.07)])
    assert faults == ['7.0 % of the time starved, 5 % is allowed']


@pytest.mark.parametrize(
    ('name', 'changes', 'margin'),
    [
        ('paper', {'attainment': 0.97}, 0.02),
        ('strict', {'far_late': 0.007}, -0.002),
        ('p50:200', {'p50_ms': 150.0}, 0.25),
        ('starved:0.05', {'slow_starvation': 0.2}, -0.15),
    ],
)
def test_margin_is_that_of_what_is_missed_most(
    name: str, changes: dict[str, float], margin: float
) -> None:
    found = parse_criterion(name).margin([round_record(), round_record(**changes)])
    assert found == pytest.approx(margin)
