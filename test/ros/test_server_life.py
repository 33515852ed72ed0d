# SPDX-License-Identifier: Apache-2.0
"""The life of a server: its state, its end, its settings, its transitions."""

import psutil
import pytest
from lifecycle_msgs.msg import Transition

from xinfer_ros.errors import Reason
from xinfer_ros.msg import ServerState
from xinfer_ros.ros import qos

from .graph import Graph
from .scripted_robot import ScriptedRobot


def test_a_late_joiner_knows_the_state_of_the_server(graph: Graph) -> None:
    """TR-04: the state is latched."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    states: list[ServerState] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    graph.until(lambda: states, 'the state reaches a late joiner', 5.0)
    assert states[0].state == ServerState.READY
    assert (states[0].epoch, states[0].model) == (robot.epoch, 'echo')
    assert states[0].num_robots == 1


def test_sigterm_answers_what_is_under_way_and_ends_well(graph: Graph) -> None:
    """A server that is told to end leaves nobody without an answer and exits with 0."""
    server = graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    requests = [robot.send(robot.observation()) for _ in range(5)]
    assert robot.answer_to(requests[-1]).reason in (Reason.OK, Reason.SHUTDOWN)
    assert server.end() == 0
    assert 'Traceback' not in server.output


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('/fleet/xinfer_server: {ros__parameters: {max_bach: 8}}', ('max_bach', 'max_robots')),
        ('/flet/xinfer_server: {ros__parameters: {max_robots: 8}}', ('/flet', '/fleet/xinfer')),
        ('/fleet/xinfer_server: {ros__parameters: {max_robots: 0}}', ('max_robots', '1 to 256')),
        ('/fleet/xinfer_server: {ros__parameters: {lease_s: soon}}', ('lease_s', 'a number')),
        ('/fleet/xinfer_server: {ros__parameters: {model: tinny}}', ('model', 'tiny')),
    ],
)
def test_a_wrong_setting_stops_the_start_and_names_the_remedy(
    graph: Graph, tmp_path, text: str, words: tuple[str, str]
) -> None:
    """LC-01 at the process: exit code 2, the file, the key, the nearest valid name."""
    path = tmp_path / 'params.yaml'
    path.write_text(text)
    server = graph.run('server_main', '--ros-args', '--params-file', str(path))
    assert server.process.wait(20) == 2
    server.end()
    for word in (str(path), *words):
        assert word in server.output
    assert 'Traceback' not in server.output


def test_settings_that_the_engine_refuses_end_the_server_with_the_code_of_wrong_settings(
    graph: Graph,
) -> None:
    """LC-01: it can only be known once the model is there; a supervisor must not try again."""
    server = graph.run('server_main', '--ros-args', '-p', 'rtc_mode:=hard_prefix')
    assert server.process.wait(60) == 2
    server.end()
    assert 'rtc_mode is hard_prefix, but tiny was not trained' in server.output


def test_the_server_is_a_managed_node(graph: Graph) -> None:
    """Deactivated it refuses, activated again it serves; cleaned up, its engine is gone."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    states: list[ServerState] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    graph.until(lambda: states, 'the state is known')
    graph.transition(Transition.TRANSITION_DEACTIVATE)
    assert robot.ask().reason == Reason.NOT_READY
    assert robot.ask_to_register().reason == Reason.NOT_READY
    graph.transition(Transition.TRANSITION_ACTIVATE)
    assert robot.ask().reason == Reason.OK
    engine = psutil.Process(states[-1].engine_pid)
    graph.transition(Transition.TRANSITION_DEACTIVATE)
    graph.transition(Transition.TRANSITION_CLEANUP)
    graph.until(lambda: not engine.is_running(), 'the engine process ends')
    graph.transition(Transition.TRANSITION_CONFIGURE)
    graph.transition(Transition.TRANSITION_ACTIVATE)
    robot.register()
    assert robot.ask().reason == Reason.OK
