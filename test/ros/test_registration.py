# SPDX-License-Identifier: Apache-2.0
"""Registration at the server node: who is taken in, and what the others are told."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from xinfer_ros.errors import Reason

from .graph import Graph
from .scripted_robot import ScriptedRobot


def test_a_second_robot_with_the_same_id_is_refused_while_the_first_lives(graph: Graph) -> None:
    """LC-03: refused at once, nothing lost for the first, both told; silence frees the id."""
    graph.server()
    first, second = ScriptedRobot(graph, 'arm1', 1), ScriptedRobot(graph, 'arm1', 2)
    seen: list[DiagnosticStatus] = []
    graph.node.create_subscription(
        DiagnosticArray, '/diagnostics', lambda m: seen.extend(m.status), 10
    )
    first.register()
    for _ in range(20):
        response = second.ask_to_register()
        assert response.reason == Reason.DUPLICATE_ID
        assert 'arm1 is registered from /arm1' in response.detail
        assert first.ask().reason == Reason.OK
    graph.until(
        lambda: any('DUPLICATE_ID' in status.message for status in seen), 'diagnostics tell it'
    )
    graph.until(
        lambda: second.ask_to_register().reason == Reason.OK, 'the silent robot loses its id'
    )
    assert second.session != first.session
    assert second.ask().reason == Reason.OK
    assert first.ask().reason == Reason.UNKNOWN_SESSION


def test_registration_is_idempotent(graph: Graph) -> None:
    """A lost response costs nothing: the same robot gets the same session again."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    session = robot.session
    assert robot.ask_to_register().session == session
    assert robot.ask().reason == Reason.OK


def test_a_robot_that_does_not_fit_is_told_what_is_expected(graph: Graph) -> None:
    """CQ-11 at registration, and the other refusals."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    cameras = robot.registration().cameras
    refusals = {
        Reason.REJECTED_PROTOCOL: {'protocol_version': 7},
        Reason.REJECTED_JOINTS: {'joint_names': ['a', 'b', 'c']},
        Reason.REJECTED_CAMERAS: {'cameras': cameras[1:]},
        Reason.REJECTED_HORIZON: {'horizon': 1000},
        Reason.REJECTED_SPACING: {'keyframe_spacing_ns': 0},
        Reason.REJECTED_NAME: {'robot_id': 'no spaces'},
    }
    for reason, changes in refusals.items():
        response = robot.ask_to_register(**changes)
        assert (response.reason, response.session) == (reason, 0)
        assert response.detail
    joints = robot.ask_to_register(joint_names=['a', 'b', 'c']).detail
    assert 'received a, b, c' in joints
    assert 'left_waist' in joints
