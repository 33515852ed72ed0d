# SPDX-License-Identifier: Apache-2.0
"""What rows may ask of each joint."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.robot.limits import RowLimits
from xinfer_ros.robot.urdf import JointLimit

JOINTS = ('elbow', 'wrist', 'gripper')
SPACING_NS = 30_000_000
Rows = npt.NDArray[np.float32]

ELBOW_AND_WRIST = {
    'elbow': JointLimit(lower=-2, upper=2, velocity=3),
    'wrist': JointLimit(velocity=6),
}


def _limits(urdf: dict[str, JointLimit] | None = None, **settings: object) -> RowLimits:
    limits = RowLimits.from_config(ExecutorConfig(**settings), JOINTS, urdf)  # type: ignore[arg-type]
    assert limits is not None
    return limits


def _rows(*rows: tuple[float, float, float]) -> Rows:
    return np.array(rows, np.float32)


def _refusal(
    limits: RowLimits,
    rows: Rows,
    before: Rows | None = None,
    first_row: int = 0,
    spacing_ns: int = SPACING_NS,
) -> str:
    with pytest.raises(Rejected) as caught:
        limits.check(rows, before, spacing_ns, first_row)
    assert caught.value.reason is Reason.REJECTED_LIMITS
    return caught.value.detail


def test_nothing_is_limited_unless_it_is_said() -> None:
    assert RowLimits.from_config(ExecutorConfig(), JOINTS, None) is None


def test_row_out_of_range_is_refused_by_joint_row_value_and_remedy() -> None:
    limits = _limits(position_limits=('elbow=-2:2',))
    assert _refusal(limits, _rows((0, 0, 0), (2.5, 9, 9)), first_row=6) == (
        'row 7 has 2.5 for elbow; -2 to 2 is allowed; if the robot may do it, '
        'change position_limits'
    )


def test_step_between_rows_is_refused() -> None:
    limits = _limits(step_limits=('wrist=0.1',))
    assert _refusal(limits, _rows((0, 0, 0), (0, 0.1, 0), (0, 0.3, 0))) == (
        'row 2 moves wrist by 0.2 from the row before; 0.1 is allowed; if the robot may do it, '
        'change step_limits'
    )


def test_speed_between_rows_is_refused() -> None:
    limits = _limits(velocity_limits=('elbow=3',), step_limits=('elbow=0.5',))
    assert _refusal(limits, _rows((0, 0, 0), (0.15, 0, 0))) == (
        'row 1 moves elbow at 5 per second; 3 is allowed; if the robot may do it, '
        'change velocity_limits'
    )


def test_seam_counts_as_a_step() -> None:
    limits, rows = _limits(step_limits=('*=0.1',)), _rows((1, 0, 0), (1, 0, 0))
    limits.check(rows, None, SPACING_NS)
    limits.check(rows, rows[0], SPACING_NS)
    assert 'row 6 moves elbow by 1 ' in _refusal(limits, rows, _rows((0, 0, 0))[0], first_row=6)


def test_no_row_breaks_no_limit() -> None:
    rows = np.zeros((0, 3), np.float32)
    _limits(position_limits=('*=1:2',)).check(rows, None, SPACING_NS)


@pytest.mark.parametrize('limit', [0.1, 1.1, 3.14159, 0.037, 123.456])
def test_row_that_reaches_a_limit_exactly_is_taken(limit: float) -> None:
    """A float32 may be larger than the limit that it stands for."""
    limits = _limits(position_limits=(f'*={-limit}:{limit}',), step_limits=(f'*={limit / 7}',))
    ramp = np.arange(-7, 8)[:, np.newaxis] * (limit / 7) * np.ones(3)
    limits.check(ramp.astype(np.float32), ramp[0].astype(np.float32), SPACING_NS)


@pytest.mark.parametrize('excess', [1e-4, 1e-2])
def test_row_just_beyond_a_limit_is_refused(excess: float) -> None:
    """What float32 rounds off is forgiven, and nothing more."""
    limits = _limits(position_limits=('elbow=-2:2',), step_limits=('wrist=0.1',))
    for row in ((2 + excess, 0, 0), (-2 - excess, 0, 0)):
        assert 'for elbow; -2 to 2 is allowed' in _refusal(limits, _rows(row))
    assert 'moves wrist' in _refusal(limits, _rows((0, 0, 0), (0, 0.1 + excess, 0)))
    assert limits.allow_step(_rows((0, 0, 0))[0], _rows((0, 0.1, 0))[0])
    assert not limits.allow_step(_rows((0, 0, 0))[0], _rows((0, 0.1 + excess, 0))[0])


@pytest.mark.parametrize('rate_hz', [7, 15, 30, 50, 90])
def test_motion_at_the_largest_speed_is_taken_at_every_rate(rate_hz: int) -> None:
    limits, spacing_ns = _limits(velocity_limits=('*=3',)), round(1e9 / rate_hz)
    ramp = (np.arange(50)[:, np.newaxis] * (3 / rate_hz) * np.ones(3)).astype(np.float32)
    limits.check(ramp, None, spacing_ns)
    faster = ramp * np.float32(1.001)
    assert 'per second; 3 is' in _refusal(limits, faster, spacing_ns=spacing_ns)


@given(
    hnp.arrays(np.float32, (6, 3), elements=st.floats(-3, 3, width=32)),
    st.none() | hnp.arrays(np.float32, (3,), elements=st.floats(-3, 3, width=32)),
)
def test_rows_are_taken_if_and_only_if_they_keep_every_limit(
    rows: Rows, before: Rows | None
) -> None:
    limits = _limits(
        position_limits=('elbow=-2:1',), velocity_limits=('wrist=100',), step_limits=('*=4',)
    )
    chain = [*([] if before is None else [before]), *rows]
    excess = [max(-2 - row[0], row[0] - 1) for row in rows]
    for one, other in itertools.pairwise(chain):
        change = np.abs(other.astype(np.float64) - one)
        excess += [change.max() - 4, change[1] - 100 * 0.03]
    if max(excess) <= 0:
        limits.check(rows, before, SPACING_NS)
    elif max(excess) > 1e-5:
        _refusal(limits, rows, before)


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_value_that_is_not_finite_never_keeps_a_limit(value: float) -> None:
    _refusal(_limits(position_limits=('*=-2:2',)), _rows((0, value, 0)))


def test_limits_come_from_the_urdf_and_settings_replace_them() -> None:
    limits = _limits(
        ELBOW_AND_WRIST,
        position_limits=('elbow=-2.5:2.5', 'gripper=0:1'),
        velocity_limits=('wrist=1',),
    )
    assert limits.lower.tolist() == [-2.5, -np.inf, 0]
    assert limits.upper.tolist() == [2.5, np.inf, 1]
    assert limits.velocity.tolist() == [3, 1, np.inf]
    assert np.isinf(limits.step).all()


def test_urdf_speed_does_not_hold_for_a_gripper_that_is_told_to_switch() -> None:
    urdf = {**ELBOW_AND_WRIST, 'gripper': JointLimit(lower=0, upper=1, velocity=0.2)}
    _limits(urdf).check(_rows((0, 0, 0), (0, 0, 1)), None, SPACING_NS)
    slow = _limits(urdf, velocity_limits=('gripper=0.2',))
    assert 'gripper at 33.3333 per second' in _refusal(slow, _rows((0, 0, 0), (0, 0, 1)))


def test_rows_that_are_speeds_are_limited_by_velocity() -> None:
    limits = _limits(ELBOW_AND_WRIST, command_interface='velocity', hold='zero_velocity',
                     step_limits=('gripper=1',))  # fmt: skip
    limits.check(_rows((-3, 6, 0), (3, -6, 1)), None, SPACING_NS)
    assert 'change velocity_limits' in _refusal(limits, _rows((-3.1, 0, 0)))
    assert 'change step_limits' in _refusal(limits, _rows((0, 0, 0), (0, 0, 1.1)))


@pytest.mark.parametrize(
    ('urdf', 'settings', 'found'),
    [
        (ELBOW_AND_WRIST, {}, 'the URDF limits no joint gripper; known: elbow, wrist; if there is '
         'none such, give position_limits gripper=LOWER:UPPER'),
        ({'elbov': JointLimit()}, {}, 'no joint elbow; did you mean elbov?'),
        ({**ELBOW_AND_WRIST, 'wrist': JointLimit(lower=0, upper=0)},
         {'step_limits': ('gripper=1',)}, 'lets wrist be at 0 to 0, nowhere else; give'),
        ({**ELBOW_AND_WRIST, 'wrist': JointLimit(velocity=0)}, {'step_limits': ('gripper=1',)},
         'wrist may move by 0 at most; more than 0 is needed: give velocity_limits wrist='),
        (None, {'step_limits': ('elbow=-1',)}, 'elbow may move by -1 at most'),
        (None, {'velocity_limits': ('elbow=0',)}, 'elbow may move by 0 at most'),
        (None, {'position_limits': ('arm=0:1',)}, "no joint matches 'arm'"),
        (None, {'position_limits': ('*=0:1',), 'command_interface': 'velocity',
                'hold': 'zero_velocity'}, 'rows say no positions: give velocity_limits'),
    ],
)  # fmt: skip
def test_limits_that_can_not_be_meant_stop_the_start(
    urdf: dict[str, JointLimit] | None, settings: dict[str, object], found: str
) -> None:
    config = ExecutorConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as caught:
        RowLimits.from_config(config, JOINTS, urdf)
    assert found in str(caught.value)
