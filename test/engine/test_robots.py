# SPDX-License-Identifier: Apache-2.0
"""Robots that come in by another door than ROS."""

from dataclasses import replace

import pytest

from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, RobotRegister
from xinfer_ros.errors import Rejected

from .scripted_engine import CONTRACT

WEBSOCKET = Registration(
    robot_id='w0',
    namespace='',
    joint_names=CONTRACT.joint_names,
    cameras=('top',),
    keyframe_spacing_ns=30_000_000,
    horizon=0,
    protocol_version=PROTOCOL_VERSION,
    instance=1,
    door='websocket',
)
LEASE_NS = 5_000_000_000


def test_a_robot_of_another_door_needs_no_namespace_and_shares_none() -> None:
    register = RobotRegister(4, LEASE_NS)
    for name in ('w0', 'w1'):
        register.register(replace(WEBSOCKET, robot_id=name), CONTRACT, 0)
    with pytest.raises(Rejected, match='a robot needs one of its own'):
        register.register(replace(WEBSOCKET, robot_id='w2', door='ros'), CONTRACT, 0)
    with pytest.raises(Rejected, match="namespace '/a b'"):
        register.register(replace(WEBSOCKET, robot_id='w2', namespace='/a b'), CONTRACT, 0)
    assert len(register) == 2


def test_an_id_belongs_to_one_robot_whichever_door_it_came_in_by() -> None:
    register = RobotRegister(4, LEASE_NS)
    register.register(WEBSOCKET, CONTRACT, 0)
    over_ros = replace(WEBSOCKET, namespace='/w0', door='ros', instance=2)
    with pytest.raises(Rejected, match='w0 is registered over a websocket'):
        register.register(over_ros, CONTRACT, LEASE_NS)


def test_who_leaves_gives_the_id_back_at_once() -> None:
    register = RobotRegister(4, LEASE_NS)
    robot, _ = register.register(WEBSOCKET, CONTRACT, 0)
    robot.leave()
    other, replaced = register.register(replace(WEBSOCKET, instance=2), CONTRACT, 0)
    assert replaced is robot
    assert register.all() == [other]
    other.leave()
    assert register.silent(0) == [other]
