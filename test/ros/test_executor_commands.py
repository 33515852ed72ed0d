# SPDX-License-Identifier: Apache-2.0
"""What an executor commands, over the wire: topics, interfaces, hold, and the last word."""

import signal
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ExecutorState

from .bringup import CONTRACT, JOINTS, Bringup
from .graph import Graph
from .scripted_server import Listener, ScriptedServer

ARM, GRIPPER = JOINTS[:5], JOINTS[5:]


def _moves(graph: Graph, robot: Listener, within_s: float = 30.0) -> None:
    graph.until(lambda: len(robot.commands) > 20, 'the robot is commanded', within_s)


def test_every_joint_goes_to_its_controller_in_the_controllers_order(graph: Graph) -> None:
    server, bringup = ScriptedServer(graph, contract=CONTRACT), Bringup(graph)
    bringup.state[:] = np.arange(6) / 10
    arm = Listener(graph, topic='arm_controller/joint_trajectory')
    gripper = Listener(graph, topic='gripper_controller/commands', kind=Float64MultiArray)
    mirror = Listener(graph, topic='joint_commands', kind=JointState)
    bringup.executor(
        'command_topics:=[arm_controller/joint_trajectory, gripper_controller/commands, '
        'joint_commands]',
        'command_types:=[joint_trajectory, float64_multi_array, joint_state]',
        'command_joints:=[elbow pan lift roll pitch, gripper, "*"]',
    )
    _moves(graph, mirror)
    point = arm.commands[-1].points[0]
    assert list(arm.commands[-1].joint_names) == ['elbow', 'pan', 'lift', 'roll', 'pitch']
    np.testing.assert_allclose(point.positions, [0.2, 0.0, 0.1, 0.3, 0.4], atol=1e-6)
    assert arm.commands[-1].header.stamp.sec == 0  # start now
    assert point.time_from_start.nanosec == 30_000_000
    np.testing.assert_allclose(gripper.commands[-1].data, [0.5], atol=1e-6)
    assert list(mirror.commands[-1].name) == list(JOINTS)
    assert mirror.commands[-1].header.stamp.sec > 0
    assert server.registrations[0].joint_names == list(JOINTS)


def test_joint_that_no_topic_commands_stops_the_start(graph: Graph) -> None:
    names = ', '.join(JOINTS)
    process = Bringup(graph).executor(
        f'joint_names:=[{names}]', 'command_joints:=["pan lift elbow roll pitch"]'
    )
    assert process.process.wait(20) == 2
    graph.until(lambda: 'gripper' in process.output, 'the joint is named', 5.0)


def test_velocities_go_into_the_field_for_velocities_and_end_with_zero(graph: Graph) -> None:
    ScriptedServer(graph, contract=CONTRACT)
    bringup, robot = Bringup(graph), Listener(graph)
    bringup.state[:] = 0.3  # the scripted rows repeat it, as velocities
    process = bringup.executor('command_interface:=velocity')
    _moves(graph, robot)
    assert len(robot.commands[-1].points[0].positions) == 0
    np.testing.assert_allclose(robot.commands[-1].points[0].velocities, [0.3] * 6, atol=1e-6)
    assert process.end() == 0
    graph.until(lambda: not any(robot.commands[-1].points[0].velocities), 'it ends at rest', 2.0)


def test_model_may_call_the_joints_by_other_names(graph: Graph) -> None:
    theirs = [f'joint{index}' for index in range(6)]
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    Bringup(graph).executor(
        f'joint_names:=[{", ".join(JOINTS)}]', f'model_joint_names:=[{", ".join(theirs)}]'
    )
    _moves(graph, robot)
    assert list(server.registrations[0].joint_names) == theirs
    assert list(server.requests[0].joint_names) == theirs
    assert list(robot.commands[0].joint_names) == list(JOINTS)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signal_brings_the_safe_output_at_once_and_exit_code_0(graph: Graph, number: int) -> None:
    """Also seen (lerobot 2621, rclpy 1166): the last word is the way to the safe pose, timed."""
    server = ScriptedServer(graph, contract=CONTRACT)
    bringup, robot = Bringup(graph), Listener(graph)
    server.motion = 0.01
    process = bringup.executor(
        'hold:=safe_pose', 'safe_pose:=["*=1.0", "gripper=0.0"]', 'safe_pose_speed:=0.5'
    )
    _moves(graph, robot)
    before = len(robot.commands)
    sent_s = graph.now_s()
    process.process.send_signal(number)
    graph.until(
        lambda: any(c.points[0].time_from_start.sec for c in robot.commands[before:]),
        'the safe output comes',
        2.0,
    )
    last = robot.commands[-1].points[0]
    delay_s = robot.arrivals_s[-1] - sent_s
    print(f'safe output after {1e3 * delay_s:.1f} ms')
    np.testing.assert_allclose(last.positions, [1.0] * 5 + [0.0], atol=1e-6)
    commanded = np.array(robot.commands[-2].points[0].positions)
    distance = np.abs(np.array(last.positions) - commanded).max()
    duration_s = last.time_from_start.sec + last.time_from_start.nanosec / 1e9
    assert duration_s == pytest.approx(distance / 0.5, abs=0.05)
    assert process.end(number) == 0
    assert 'Traceback' not in process.output
    count = len(robot.commands)
    graph.spin(0.3)
    assert len(robot.commands) == count  # nothing after the last word


def test_exception_in_the_control_thread_brings_the_safe_output(graph: Graph) -> None:
    """A URDF that comes late and is none: the process says so and ends with its exit code."""
    from std_msgs.msg import String

    from xinfer_ros.ros import qos

    description = graph.node.create_publisher(String, '/r0/robot_description', qos.STATE)
    process = Bringup(graph).executor('robot_description_topic:=robot_description')
    graph.until(lambda: description.get_subscription_count() > 0, 'the executor waits for it')
    description.publish(String(data='<robot'))
    assert process.process.wait(20) == 2
    graph.until(lambda: 'URDF' in process.output, 'it says why', 5.0)


def test_silent_joint_states_hold_the_robot_though_rows_remain(graph: Graph) -> None:
    server = ScriptedServer(graph, contract=CONTRACT)
    bringup, robot = Bringup(graph), Listener(graph)
    server.motion = 0.001
    bringup.executor('sensor_timeout_s:=0.1', 'minimum_period_s:=0.3')  # longer than the timeout
    _moves(graph, robot)
    bringup.joints_run = False
    graph.until(
        lambda: robot.report is not None and 'joint states' in robot.report.hold,
        'the robot holds',
        5.0,
    )
    assert robot.report.queued_steps > 0
    assert robot.report.state == ExecutorState.HOLDING
    count = len(robot.commands)
    graph.until(lambda: len(robot.commands) > count + 10, 'the last command is repeated', 3.0)
    held = {tuple(command.points[0].positions) for command in robot.commands[count:]}
    assert len(held) == 1
    steps = robot.report.executed_steps
    graph.until(lambda: len(robot.commands) > count + 60, 'it holds for good', 5.0)
    assert robot.report.executed_steps == steps  # a request that would leave changes nothing
    bringup.joints_run = True
    graph.until(lambda: robot.report.executed_steps > steps + 5, 'and goes on', 3.0)


def test_names_that_launch_gives_are_for_the_executor_alone(graph: Graph) -> None:
    """Launch renames every node of a process, and remaps the topics of all."""
    ScriptedServer(graph, contract=CONTRACT)
    bringup, robot = Bringup(graph), Listener(graph, topic='elsewhere')
    bringup.rules = ['__node:=executor', 'joint_trajectory:=elsewhere']
    bringup.executor()
    _moves(graph, robot)
    names = [name for name, space in graph.node.get_node_names_and_namespaces() if space == '/r0']
    assert sorted(names) == ['executor', 'executor_sensors']


def test_refusal_at_registration_is_counted_and_told(graph: Graph) -> None:
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    server.refusal = Rejected(Reason.REJECTED_JOINTS, 'no joint elbow')
    Bringup(graph).executor()
    graph.until(lambda: robot.count(Reason.REJECTED_JOINTS) > 1, 'it is refused again and again')
    assert robot.state == ExecutorState.REGISTERING
    assert robot.report.hold == 'REJECTED_JOINTS: no joint elbow'
    server.refusal = None
    _moves(graph, robot)
    graph.until(lambda: robot.report.hold == '', 'nothing of it stays', 3.0)


def test_several_drivers_and_raw_pictures_make_one_observation(graph: Graph) -> None:
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    bringup = Bringup(graph, raw=True)
    bringup.drivers = [ARM, GRIPPER]
    bringup.state[:] = np.arange(6) / 10
    bringup.executor(f'joint_names:=[{", ".join(JOINTS)}]')
    _moves(graph, robot)
    request: Any = server.requests[-1]
    np.testing.assert_allclose(request.state, np.arange(6) / 10, atol=1e-6)
    assert request.images[0].encoding == 'rgb8'
    assert not request.images[0].compressed
    assert isinstance(robot.commands[-1], JointTrajectory)
