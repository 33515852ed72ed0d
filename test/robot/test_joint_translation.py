# SPDX-License-Identifier: Apache-2.0
"""The robot's joint names, and what a model calls the same joints."""

from xinfer_ros.robot.joint_translation import JointTranslation


def test_names_are_translated_both_ways_in_any_order() -> None:
    names = JointTranslation(('shoulder_pan', 'elbow'), ('joint0', 'joint1'))
    assert names.to_model(('shoulder_pan', 'elbow')) == ('joint0', 'joint1')
    assert names.to_robot(('joint1', 'joint0')) == ('elbow', 'shoulder_pan')


def test_names_that_change_places_are_not_confused() -> None:
    names = JointTranslation(('a', 'b'), ('b', 'a'))
    assert names.to_model(('a', 'b')) == ('b', 'a')
    assert names.to_robot(('b', 'a')) == ('a', 'b')


def test_same_names_need_no_translation_and_unknown_ones_are_shown_as_they_are() -> None:
    assert JointTranslation(('a',), ()).to_model(('a',)) == ('a',)
    assert JointTranslation(('a',), ('x',)).to_robot(('y',)) == ('y',)
