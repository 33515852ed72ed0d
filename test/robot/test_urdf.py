# SPDX-License-Identifier: Apache-2.0
"""Joint limits from the text of a URDF."""

import math

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.urdf import MAX_CHARACTERS, JointLimit, urdf_limits

ARM = """<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <!-- no <!DOCTYPE here -->
  <link name="base"/>
  <joint name="lift" type="prismatic">
    <limit lower="0" upper="0.4" velocity="0.2" effort="9"/>
  </joint>
  <joint name="elbow" type="revolute">
    <limit lower="-2.5" upper="2.5" velocity="3.14" effort="9"/>
    <safety_controller k_velocity="10" soft_lower_limit="-2.0" soft_upper_limit="2.7"/>
  </joint>
  <joint name="wrist" type="revolute">
    <limit lower="-1" upper="1" velocity="3" effort="9"/>
    <safety_controller k_velocity="10"/>
  </joint>
  <joint name="roll" type="continuous"><limit velocity="6" effort="9"/></joint>
  <joint name="wheel" type="continuous"/>
  <joint name="mount" type="fixed"/>
  <joint name="drift" type="floating"/>
  <joint name="finger" type="prismatic">
    <mimic joint="lift"/><limit lower="0" upper="0.04" velocity="1" effort="1"/>
  </joint>
  <ros2_control name="hw" type="system">
    <joint name="elbow"><command_interface name="position"/></joint>
    <joint name="ghost"/>
  </ros2_control>
</robot>
"""


def test_limits_of_every_joint_that_moves_by_itself() -> None:
    assert urdf_limits(ARM) == {
        'lift': JointLimit(lower=0, upper=0.4, velocity=0.2),
        'elbow': JointLimit(lower=-2.0, upper=2.5, velocity=3.14),  # the narrower one counts
        'wrist': JointLimit(lower=-1, upper=1, velocity=3),  # no soft limit is none, not 0
        'roll': JointLimit(velocity=6),
        'wheel': JointLimit(lower=-math.inf, upper=math.inf, velocity=math.inf),
    }


def _urdf(joint: str) -> str:
    return f'<robot name="arm">{joint}</robot>'


def test_limit_that_is_left_out_is_zero_for_position_and_none_for_velocity() -> None:
    limits = urdf_limits(_urdf('<joint name="a" type="revolute"><limit upper="1"/></joint>'))
    assert limits == {'a': JointLimit(lower=0, upper=1, velocity=math.inf)}


BOMB = """<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<robot name="&b;"/>"""


@pytest.mark.parametrize('text', [BOMB, '<!DOCTYPE robot SYSTEM "file:///etc/passwd"><robot/>'])
def test_document_type_is_refused(text: str) -> None:
    """Entities can grow without end, or read files."""
    with pytest.raises(ConfigError, match='declares a DOCTYPE'):
        urdf_limits(text)


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('', 'is not XML'),
        ('<robot>', 'is not XML'),
        ('<robot>&unknown;</robot>', 'is not XML'),
        ('<robot>\x00</robot>', 'is not XML'),
        ('<sdf/>', 'begins with <sdf>; <robot> is expected'),
        (_urdf('<joint type="fixed"/>'), 'a joint without a name'),
        (_urdf('<joint name="a" type="fixed"/>' + '<joint name="b" type="revolute"/>'), 'b no'),
        (_urdf('<joint name="a" type="continuous"/>' * 2), 'joint a twice'),
        (
            _urdf('<joint name="a" type="revolute"><limit lower="${-pi}"/></joint>'),
            r"joint a lower '\$\{-pi\}'; a number is expected; expand xacro first",
        ),
        (_urdf('<joint name="a" type="revolute"><limit velocity="nan"/></joint>'), "'nan'"),
        (f'<robot name="{"x" * MAX_CHARACTERS}"/>', 'characters; 20000000 are allowed'),
    ],
)
def test_text_that_is_no_sound_urdf_is_refused(text: str, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        urdf_limits(text)
