# SPDX-License-Identifier: Apache-2.0
"""Bytes that are no message: anyone on the network may publish them."""

import pytest
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from xinfer_ros.action import RunSkill
from xinfer_ros.errors import Reason
from xinfer_ros.msg import ActionChunk, Budget, ExecutorState, Observation
from xinfer_ros.ros import qos
from xinfer_ros.ros.robot_port import read_by_rclpy

from .brain_bench import BrainBench
from .graph import Graph
from .scripted_robot import ScriptedRobot

NO_MESSAGES = [head + b'\0\0' + bytes(20) for head in (b'\0\0', b'\0\1', b'\0\7', b'\xff\xff')]


@pytest.mark.parametrize('size', [0, 1, 3, 4, 30])
@pytest.mark.parametrize('head', [b'\0\0', b'\0\3', b'\0\7', b'\0\12', b'\xff\xff'])
def test_what_rclpy_can_not_read_is_a_value_error(head: bytes, size: int) -> None:
    """SE-01."""
    data = (head + serialize_message(Observation(instruction='x' * 99))[2:])[:size]
    with pytest.raises(ValueError, match=f'{size} bytes are no observation'):
        read_by_rclpy(data)


def test_server_answers_on_when_somebody_publishes_bytes_that_are_no_message(
    graph: Graph,
) -> None:
    """SE-01: one such message had ended the server, and with it the whole fleet."""
    server = graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    observations = graph.node.create_publisher(Observation, '/r0/observation', qos.OBSERVATION)
    budgets = graph.node.create_publisher(Budget, '/r0/budget', qos.BUDGET)
    for publisher in (observations, budgets):
        graph.until(publisher.get_subscription_count, 'the server listens')
        for data in NO_MESSAGES:
            publisher.publish(data)
    graph.until(lambda: 'r0: ' in server.output, 'the server tells of it')
    assert robot.ask().reason == Reason.OK
    assert 'Traceback' not in server.output


def test_the_brain_node_goes_on_when_somebody_publishes_what_can_not_be_read(graph: Graph) -> None:
    """SE-01: one report in an unknown state had ended it, and with it every episode."""
    bench = BrainBench(graph, 'rpent_port:=18102', 'rpent_joint_names:=[j1]')
    try:
        goal = bench.skill('r0', task='pick', timeout_ns=60 * 10**9)
        topics = (
            (ExecutorState, '/r0/executor_state', qos.CHUNK),
            (String, '/r0/task', qos.STATE),
            (ActionChunk, '/rpent_0/action_chunk', qos.CHUNK),
        )
        for kind, topic, profile in topics:
            publisher = graph.node.create_publisher(kind, topic, profile)
            graph.until(publisher.get_subscription_count, 'the node listens')
            for data in NO_MESSAGES:
                publisher.publish(data)
            if kind is ExecutorState:
                publisher.publish(ExecutorState(state=99))
                publisher.publish(ExecutorState(reasons=['OK']))
        ends = (RunSkill.Result.SILENT, RunSkill.Result.REPLACED)  # by a task of no letters
        assert goal.result.outcome in ends
        assert bench.episode('r0').accepted
        assert 'Traceback' not in bench.node.output
    finally:
        bench.close()
