# SPDX-License-Identifier: Apache-2.0
"""The newest joint readings, however many drivers publish them."""

import pytest

from xinfer_ros.errors import Rejected
from xinfer_ros.robot.joint_readings import JointReading, JointReadings

MS = 1_000_000
ARM, GRIPPER = ('waist', 'elbow'), ('gripper',)


def _reading(
    names: tuple[str, ...], position: list[float], at_ms: int, effort: tuple[float, ...] = ()
) -> JointReading:
    return JointReading(names=names, position=position, effort=effort, arrival_ns=at_ms * MS)


def test_drivers_that_share_a_topic_are_joined_by_name() -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [0.1, 0.2], 0))
    with pytest.raises(Rejected, match='lack gripper'):
        readings.sensed((*GRIPPER, *ARM), 0)
    readings.add(_reading(GRIPPER, [1.0], 10))
    sensed = readings.sensed(('gripper', 'elbow', 'waist'), 20 * MS)
    assert list(sensed.state) == pytest.approx([1.0, 0.2, 0.1])
    assert sensed.effort is None
    assert readings.first_names == ARM
    assert readings.num_drivers == 2


def test_efforts_are_there_if_every_joint_has_one() -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [0.1, 0.2], 0, effort=(5.0, -6.0)))
    assert list(readings.sensed(('elbow', 'waist'), 0).effort) == [-6.0, 5.0]
    readings.add(_reading(GRIPPER, [1.0], 0))
    assert readings.sensed(('elbow', 'gripper'), 0).effort is None


def test_joint_that_goes_silent_is_named_and_foreign_joints_do_not_matter() -> None:
    readings = JointReadings(100 * MS)
    assert readings.trouble(ARM, 10**12) == ''  # nothing was heard yet
    readings.add(_reading(ARM, [0.1, 0.2], 50))
    readings.add(_reading(GRIPPER, [1.0], 0))
    readings.add(_reading(('wheel',), [7.0], 0))
    assert readings.trouble(ARM, 150 * MS) == ''
    expected = 'joint states of gripper silent for more than 0.1 s'
    assert readings.trouble((*ARM, *GRIPPER), 150 * MS) == expected
    with pytest.raises(Rejected, match='gripper silent'):
        readings.sensed((*ARM, *GRIPPER), 150 * MS)
    assert readings.trouble(ARM, 151 * MS) == 'joint states silent for more than 0.1 s'


def test_newest_reading_of_a_joint_counts() -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [0.1, 0.2], 0))
    readings.add(_reading(('elbow', 'waist'), [0.5, 0.6], 90))
    assert readings.trouble(ARM, 150 * MS) == ''
    assert list(readings.sensed(ARM, 150 * MS).state) == pytest.approx([0.6, 0.5])


def test_driver_that_is_heard_is_not_silent_though_its_words_come_later() -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [0.1, 0.2], 0))
    readings.heard(90 * MS)
    assert readings.trouble(ARM, 150 * MS) == ''
    assert list(readings.sensed(ARM, 150 * MS).state) == pytest.approx([0.1, 0.2])


def test_reading_without_positions_is_left_out() -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [], 0))
    with pytest.raises(Rejected, match='no message of joint states yet'):
        readings.sensed(ARM, 0)
    readings.add(_reading(ARM, [0.1, 0.2], 0))
    readings.forget()
    assert readings.first_names == ()


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_joint_without_a_finite_position_is_named(value: float) -> None:
    readings = JointReadings(100 * MS)
    readings.add(_reading(ARM, [0.1, value], 0))
    with pytest.raises(Rejected, match=f'have {value} for elbow; finite'):
        readings.sensed(ARM, 0)
    assert list(readings.sensed(('waist',), 0).state) == pytest.approx([0.1])
