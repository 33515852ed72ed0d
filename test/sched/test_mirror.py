# SPDX-License-Identifier: Apache-2.0
"""The mirror of an action queue: rows of 30 ms, times in ms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.sched.mirror import DEFAULT_HORIZON, DEFAULT_SPACING, Mirror, Sight


def _sight(executed: float, leftover: float, horizon: float = 10.0) -> Sight:
    return Sight(executed=executed, leftover=leftover, horizon=horizon, spacing=30.0)


def _mirror(executed: float = 0.0, leftover: float = 4.0, horizon: float = 10.0) -> Mirror:
    mirror = Mirror()
    mirror.observe(0.0, _sight(executed, leftover, horizon))
    return mirror


def test_robot_executes_what_it_has_and_then_stands() -> None:
    mirror = _mirror(leftover=4.0)
    assert mirror.executed_at(60.0) == 2.0
    assert mirror.executed_at(120.0) == 4.0
    assert mirror.executed_at(900.0) == 4.0
    assert mirror.dry_at == 120.0


def test_chunk_on_its_way_counts_from_its_arrival() -> None:
    mirror = _mirror(leftover=2.0)
    mirror.compute()
    assert mirror.computes
    assert mirror.dry_at == 60.0  # nobody knows yet when it comes
    mirror.send(100.0, 20.0)
    assert not mirror.computes
    assert mirror.good_until == 10.0
    assert mirror.executed_at(90.0) == 2.0
    assert mirror.executed_at(120.0 + 60.0) == 4.0  # it stood from 60 to 120
    assert mirror.dry_at == 120.0 + 8 * 30.0


def test_chunk_is_good_from_where_its_observation_was() -> None:
    """The rows that pass while it is computed are lost."""
    mirror = _mirror(leftover=9.0)
    mirror.compute()
    mirror.observe(90.0, _sight(3.0, 6.0))
    mirror.send(90.0, 0.0)
    assert mirror.good_until == 10.0


def test_computation_that_ends_without_a_chunk_changes_nothing() -> None:
    mirror = _mirror(leftover=2.0)
    mirror.compute()
    mirror.withdraw()
    mirror.send(10.0, 0.0)
    assert mirror.dry_at == 60.0


def test_error_is_of_what_was_foreseen_of_an_observation() -> None:
    mirror = _mirror(leftover=10.0)
    mirror.observe(90.0, _sight(3.0, 7.0))
    assert (mirror.error_sum, mirror.observations) == (0.0, 1)
    mirror.observe(150.0, _sight(4.0, 6.0))  # it should have been 5
    assert (mirror.error_sum, mirror.error_max, mirror.observations) == (1.0, 1.0, 2)


def test_observation_is_believed_and_not_the_forecast() -> None:
    mirror = _mirror(leftover=10.0)
    mirror.observe(90.0, _sight(1.0, 2.0))
    assert mirror.executed_at(90.0) == 1.0
    assert mirror.dry_at == 150.0


def test_link_is_how_soon_an_answer_is_seen_at_best() -> None:
    mirror = _mirror(leftover=2.0)
    for number, seen_after in enumerate((40.0, 16.0, 28.0)):
        left = 300.0 * (number + 1)
        mirror.compute()
        mirror.send(left, 0.0)
        start = mirror.start
        mirror.observe(left + seen_after, _sight(start + 1.0, 9.0))
    assert mirror.link == pytest.approx(16.0, abs=0.5)


def test_answer_that_is_never_seen_is_forgotten() -> None:
    mirror = _mirror(leftover=2.0)
    mirror.compute()
    mirror.send(10.0, 0.0)
    mirror.observe(500.0, _sight(2.0, 0.0))
    assert mirror.good_until == 10.0  # it may still come
    mirror.observe(1100.0, _sight(2.0, 0.0))
    assert mirror.good_until == 2.0


def test_robot_that_starts_over_is_known_anew() -> None:
    mirror = _mirror(executed=500.0, leftover=5.0)
    mirror.compute()
    mirror.send(10.0, 0.0)
    mirror.observe(100.0, _sight(0.0, 0.0))
    assert (mirror.error_sum, mirror.good_until) == (0.0, 0.0)


def test_unknown_horizon_and_spacing_have_defaults_and_are_learned() -> None:
    mirror = Mirror()
    mirror.observe(0.0, Sight(executed=0.0, leftover=0.0, horizon=0.0, spacing=0.0))
    assert (mirror.horizon, mirror.spacing) == (DEFAULT_HORIZON, DEFAULT_SPACING)
    mirror.observe(10.0, Sight(executed=0.0, leftover=24.0, horizon=0.0, spacing=0.0))
    assert mirror.horizon == 24.0


def test_share_of_time_in_motion_falls_while_a_robot_starves() -> None:
    mirror = _mirror(leftover=0.0)
    shares = []
    for number in range(1, 40):
        mirror.observe(100.0 * number, _sight(0.0, 0.0))
        shares.append(mirror.moves)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.4
    mirror.observe(4000.0, _sight(3.0, 10.0))
    assert mirror.moves > shares[-1]


@given(
    sights=st.lists(
        st.tuples(st.integers(1, 400), st.integers(0, 12), st.integers(0, 20), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_forecast_never_falls_and_never_passes_the_rows_that_there_are(
    sights: list[tuple[int, int, int, bool]],
) -> None:
    mirror, now, executed = Mirror(), 0.0, 0.0
    for passed, steps, leftover, serves in sights:
        now, executed = now + passed, executed + steps
        mirror.observe(now, _sight(executed, float(leftover)))
        if serves:
            mirror.compute()
            mirror.send(now + 10.0, 2.0)
        forecast = [mirror.executed_at(now + ahead) for ahead in (0.0, 15.0, 90.0, 400.0, 4000.0)]
        assert forecast == sorted(forecast)
        assert executed <= forecast[0]
        assert forecast[-1] == mirror.good_until
        assert 0.0 <= mirror.moves <= 1.0
        assert mirror.link >= 0.0
