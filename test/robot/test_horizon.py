# SPDX-License-Identifier: Apache-2.0
"""How the minimum period follows what new chunks say."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.horizon import PATIENCE, HorizonAdaptation, HorizonSettings

MS = 1_000_000
SPACING_NS = 30 * MS
HORIZON, FROZEN = 50, 6
JOINTS = ('elbow', 'wrist', 'gripper')
Rows = npt.NDArray[np.float32]


def _adaptation(**settings_of_node: object) -> HorizonAdaptation:
    config = ExecutorConfig(horizon_adaptation=True, **settings_of_node)  # type: ignore[arg-type]
    settings = HorizonSettings.from_config(config, JOINTS)
    assert settings is not None
    return HorizonAdaptation(settings)


def _rows(speed: float = 0.01, shift: float = 0.0, gripper: float = 0.0) -> Rows:
    """Return a chunk whose elbow moves evenly and whose wrist stands beside its place."""
    rows = np.zeros((HORIZON, 3), np.float32)
    rows[:, 0] = np.arange(HORIZON) * speed
    rows[:, 1:] = shift, gripper
    return rows


def _period_after(*shifts: float) -> int:
    adaptation = _adaptation()
    for shift in shifts:
        adaptation.observe(_rows(shift=shift), _rows(), FROZEN)
    return adaptation.period_ns(False)


def test_rule_is_off_unless_it_is_chosen() -> None:
    assert HorizonSettings.from_config(ExecutorConfig(), JOINTS) is None


def test_period_starts_at_the_setting() -> None:
    assert _period_after() == 180 * MS


def test_disagreement_is_told_in_rows_of_motion() -> None:
    adaptation = _adaptation()
    adaptation.observe(_rows(shift=0.025), _rows(), FROZEN)
    assert adaptation.disagreement == pytest.approx(2.5)


@pytest.mark.parametrize('scale', [0.1, 1, 1000])
def test_disagreement_knows_no_unit(scale: float) -> None:
    adaptation = _adaptation()
    adaptation.observe(_rows(0.05, 0.1) * np.float32(scale), _rows(0.05) * np.float32(scale), 0)
    assert adaptation.disagreement == pytest.approx(2, rel=1e-5)


def test_period_shortens_at_once_and_grows_after_patience() -> None:
    assert _period_after(0.03) == 135 * MS
    assert _period_after(0.03, 0.03, 0.03) == 120 * MS
    assert _period_after(*[0.0] * (PATIENCE - 1)) == 180 * MS
    assert _period_after(*[0.0] * PATIENCE) == 202_500_000
    assert _period_after(*[0.0] * 100) == 360 * MS


def test_period_stays_between_agreement_and_disagreement() -> None:
    assert _period_after(*[0.01] * 20) == 180 * MS


def test_agreement_must_be_unbroken() -> None:
    assert _period_after(*[0.0, 0.0, 0.01] * 10) == 180 * MS


def test_frozen_rows_and_discrete_joints_say_nothing() -> None:
    new = _rows(gripper=1.0)
    new[:FROZEN, 1] = 9.0
    adaptation = _adaptation()
    adaptation.observe(new, _rows(), FROZEN)
    assert adaptation.disagreement == 0.0


def test_robot_that_stands_still_agrees_in_spite_of_noise() -> None:
    adaptation = _adaptation()
    noise = np.random.default_rng(0).normal(0, 3e-4, (2, HORIZON, 3)).astype(np.float32)
    for _ in range(PATIENCE):
        adaptation.observe(noise[0], noise[1], FROZEN)
    assert adaptation.period_ns(False) > 180 * MS


def test_rows_that_are_speeds_are_compared_by_where_they_lead() -> None:
    """Even motion has no change of speed to measure with; two rows of it are apart at the end."""
    adaptation = _adaptation(command_interface='velocity', hold='zero_velocity')
    old = np.full((4, 3), 0.5, np.float32)
    new = np.array([[1.5] * 3, [0.5] * 3, [1.5] * 3, [0.5] * 3], np.float32)
    adaptation.observe(new, old, 0)
    assert adaptation.disagreement == pytest.approx((2 + 2 + 4 + 4) / 4)


def test_robot_that_is_to_move_from_standstill_disagrees() -> None:
    adaptation = _adaptation()
    adaptation.observe(_rows(), _rows(speed=0.0), FROZEN)
    assert adaptation.period_ns(False) < 180 * MS


@pytest.mark.parametrize('rows', [0, 1, FROZEN])
def test_without_an_overlap_behind_the_frozen_rows_nothing_is_learned(rows: int) -> None:
    adaptation = _adaptation()
    for new, old in ((_rows(shift=9), _rows()[:rows]), (_rows(shift=9)[:rows], _rows())):
        adaptation.observe(new, old, FROZEN)
    assert (adaptation.period_ns(False), adaptation.disagreement) == (180 * MS, 0.0)


def test_single_row_of_overlap_is_compared() -> None:
    adaptation = _adaptation()
    adaptation.observe(_rows(shift=9), _rows()[:1], 0)
    assert adaptation.period_ns(False) == 135 * MS


def test_rows_far_behind_the_longest_period_do_not_count() -> None:
    """360 ms are 12 rows: otherwise a shorter period, which leaves more rows, would shorten it."""
    new = _rows()
    new[FROZEN + 12 :, 1] = 9.0
    adaptation = _adaptation()
    adaptation.observe(new, _rows(), FROZEN)
    assert adaptation.disagreement == 0.0


def test_tight_budget_means_the_shortest_period_and_leaves_the_rule_alone() -> None:
    adaptation = _adaptation()
    assert adaptation.period_ns(True) == 120 * MS
    assert adaptation.period_ns(False) == 180 * MS


@pytest.mark.parametrize(
    ('least_ms', 'most_ms', 'expected_ms'),
    [(0, None, 180), (240, None, 240), (0, 150, 150), (240, 150, 150), (0, 0, 30)],
)
def test_commitment_bounds_the_period(
    least_ms: int, most_ms: int | None, expected_ms: int
) -> None:
    """The rule is d <= s <= H - d; its upper end is stronger: beyond it rows run out."""
    most_ns = None if most_ms is None else most_ms * MS
    assert _adaptation().period_ns(False, least_ms * MS, most_ns) == expected_ms * MS


@pytest.mark.parametrize(('shift', 'expected_ms'), [(0.03, 90), (0.0, 135)])
def test_rule_goes_on_from_the_period_in_force(shift: float, expected_ms: int) -> None:
    """Else what the commitment has cut off would have to be gone through again, unseen."""
    adaptation = _adaptation(longest_period_s=9.0, shortest_period_s=0.05)
    for _ in range(200):
        adaptation.observe(_rows(), _rows(), FROZEN)
        adaptation.period_ns(False, most_ns=120 * MS)
    for _ in range(1 if shift else PATIENCE):
        adaptation.observe(_rows(shift=shift), _rows(), FROZEN)
    assert adaptation.period_ns(False) // MS == expected_ms


def test_bound_that_has_passed_leaves_the_rule_where_it_was() -> None:
    adaptation = _adaptation()
    assert adaptation.period_ns(False, most_ns=120 * MS) == 120 * MS
    assert adaptation.period_ns(False) == 180 * MS


def test_rule_without_a_joint_to_compare_stops_the_start() -> None:
    config = ExecutorConfig(horizon_adaptation=True, discrete_joints=('*',))
    with pytest.raises(ConfigError, match=r"discrete_joints is \['\*'\], which leaves no joint"):
        HorizonSettings.from_config(config, JOINTS)


@given(st.lists(st.floats(0, 0.1), max_size=60))
def test_period_keeps_its_bounds_and_depends_on_the_chunks_alone(shifts: list[float]) -> None:
    assert 120 * MS <= _period_after(*shifts) <= 360 * MS
    assert _period_after(*shifts) == _period_after(*shifts)


@given(st.floats(0, 3), st.integers(1, 4))
def test_period_comes_to_rest(drift: float, power: int) -> None:
    """The longer a chunk was executed the more the next one differs, up to the fourth power."""
    adaptation, periods = _adaptation(), []
    for _ in range(100):
        executed = -(-adaptation.period_ns(False) // SPACING_NS)
        apart = 0.01 * drift * (executed / 6) ** power
        adaptation.observe(_rows(shift=apart), _rows(), FROZEN)
        periods.append(adaptation.period_ns(False))
    assert len(set(periods[-50:])) == 1
