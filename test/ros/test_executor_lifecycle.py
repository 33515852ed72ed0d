# SPDX-License-Identifier: Apache-2.0
"""The executor as a managed node, through the services that `ros2 lifecycle` calls."""

import signal
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.lifecycle import ManagedEntity, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.msg import ExecutorState
from xinfer_ros.ros.executor_node import ExecutorNode

from .bringup import CAMERA, CONTRACT, Bringup
from .graph import Graph
from .hosted_executor import HostedExecutor
from .scripted_server import Listener, ScriptedServer


class Lifecycle:
    """
    Calls the lifecycle services of the executor.

    :param graph: where it lives
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._change = graph.node.create_client(ChangeState, '/r0/executor/change_state')
        self._get = graph.node.create_client(GetState, '/r0/executor/get_state')
        graph.be_known('/r0/executor')

    def _ask(self, client: Any, request: Any) -> Any:
        self._graph.until(client.service_is_ready, f'{client.srv_name} is offered')
        future = client.call_async(request)
        self._graph.until(future.done, f'{client.srv_name} answers', 10.0)
        return future.result()

    def change(self, transition: int) -> bool:
        """Return whether a transition has succeeded."""
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self._ask(self._change, request).success)

    @property
    def state(self) -> int:
        """Return the present state."""
        return int(self._ask(self._get, GetState.Request()).current_state.id)


def _diagnostics(graph: Graph) -> list[tuple[bytes, str]]:
    """Return a list that gets level and text of everything on /diagnostics."""
    said: list[tuple[bytes, str]] = []
    graph.node.create_subscription(
        DiagnosticArray,
        '/diagnostics',
        lambda message: said.extend((s.level, s.message) for s in message.status),
        100,
    )
    return said


def test_managed_executor_commands_only_while_active(graph: Graph) -> None:
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    server.motion = 0.001
    process = Bringup(graph).executor('autostart:=false')
    node = Lifecycle(graph)
    assert node.state == State.PRIMARY_STATE_UNCONFIGURED
    assert node.change(Transition.TRANSITION_CONFIGURE)
    graph.spin(0.5)
    assert server.requests == []
    assert node.change(Transition.TRANSITION_ACTIVATE)
    graph.until(lambda: len(robot.commands) > 10, 'the robot is commanded')
    episode = server.requests[-1].episode
    assert node.change(Transition.TRANSITION_DEACTIVATE)
    graph.until(lambda: robot.state == ExecutorState.STOPPED, 'it says that it is stopped')
    graph.spin(0.2)
    count = len(robot.commands)
    graph.spin(0.3)
    assert len(robot.commands) == count
    assert node.change(Transition.TRANSITION_ACTIVATE)
    graph.until(lambda: len(robot.commands) > count + 10, 'the robot is commanded again')
    assert server.requests[-1].episode == episode + 1
    assert robot.report.overruns < 20  # the time in between is not missed
    assert node.change(Transition.TRANSITION_DEACTIVATE)
    assert node.change(Transition.TRANSITION_CLEANUP)
    assert node.state == State.PRIMARY_STATE_UNCONFIGURED
    graph.until(
        lambda: graph.node.count_publishers('/r0/joint_trajectory') == 0, 'its topics are gone'
    )
    assert node.change(Transition.TRANSITION_CONFIGURE)
    assert node.change(Transition.TRANSITION_ACTIVATE)
    count = len(robot.commands)
    graph.until(lambda: len(robot.commands) > count + 10, 'and it starts from there once more')
    assert node.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert node.state == State.PRIMARY_STATE_FINALIZED
    assert process.end() == 0


class Broken(ManagedEntity):
    """Something of a node that can't be activated."""

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Fail as a bug does."""
        raise RuntimeError('no hardware')


def test_fault_in_a_transition_leaves_nothing_that_commands(graph: Graph) -> None:
    """Else the topics of the failed life would stay beside those of the next one."""
    domain = int(graph.env['ROS_DOMAIN_ID'])
    with rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO):
        node = ExecutorNode('/r0', ExecutorConfig(camera_names=(CAMERA,)))
        node.add_managed_entity(Broken())
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.count_publishers('/r0/joint_trajectory') == 1
        assert node.trigger_activate() != TransitionCallbackReturn.SUCCESS
        graph.until(lambda: node.count_publishers('/r0/joint_trajectory') == 0, 'they are gone')
        node.destroy_node()


def test_process_that_was_stopped_goes_on_and_does_not_catch_up(graph: Graph) -> None:
    """Also seen (lerobot 2531): missed ticks are counted, and a stall is a pause."""
    ScriptedServer(graph, contract=CONTRACT)
    robot = Listener(graph)
    process = Bringup(graph).executor()
    graph.until(lambda: len(robot.commands) > 10 and robot.report, 'the robot is commanded')
    before = robot.report
    process.process.send_signal(signal.SIGSTOP)
    graph.spin(0.5)
    process.process.send_signal(signal.SIGCONT)
    count = len(robot.commands)
    graph.until(lambda: len(robot.commands) > count + 10, 'it goes on')
    graph.until(lambda: robot.report.overruns > before.overruns + 5, 'misses are counted')
    skipped = robot.report.skipped_steps - before.skipped_steps
    assert skipped < robot.report.overruns - before.overruns - 5
    assert 'stalls' not in process.output  # the whole process was halted, not one of its threads


def test_stalled_control_thread_is_noticed_and_the_robot_made_safe(graph: Graph) -> None:
    """By another thread of the process: the safe output comes, and an ERROR in diagnostics."""
    ScriptedServer(graph, contract=CONTRACT)
    Bringup(graph)
    robot, said = Listener(graph), _diagnostics(graph)
    config = ExecutorConfig(
        camera_names=(CAMERA,), hold='safe_pose', safe_pose=('*=1.0',), safe_pose_speed=0.5
    )
    with HostedExecutor(graph, config) as host:
        graph.until(lambda: len(robot.commands) > 10 and robot.report, 'the robot is commanded')
        host.stall()
        graph.until(
            lambda: any(level == DiagnosticStatus.ERROR and 'stalls' in t for level, t in said),
            'the stall is told',
            3.0,
        )
        last = robot.commands[-1].points[0]
        assert list(last.positions) == [1.0] * 6
        assert last.time_from_start.sec == 2
        count, episode = len(robot.commands), robot.report.episode
        host.go_on()
        graph.until(lambda: len(robot.commands) > count + 10, 'it goes on')
        graph.until(lambda: robot.report.episode == episode + 1, 'in a new episode')
    assert host.code == 0


def test_diagnostics_tell_a_model_without_motion_from_a_missing_chunk(graph: Graph) -> None:
    """Also seen (dot_policy 4)."""
    server, robot = ScriptedServer(graph, contract=CONTRACT), Listener(graph)
    said = _diagnostics(graph)
    Bringup(graph).executor('step_limits:=["elbow=0.5"]')
    graph.until(lambda: any('outputs no motion' in text for _, text in said), 'it stands still')
    assert (DiagnosticStatus.WARN, 'the model outputs no motion') in said
    server.motion = 0.01
    graph.until(lambda: said[-1] == (DiagnosticStatus.OK, 'RUNNING'), 'it moves', 5.0)
    server.motion = 1.0
    graph.until(lambda: any('REJECTED_LIMITS' in text for _, text in said), 'it moves too fast')
    assert any('elbow' in text for _, text in said)
    server.answers = False
    graph.until(lambda: said[-1][1].startswith('no chunk'), 'no chunk comes', 5.0)
    assert said[-1][0] == DiagnosticStatus.WARN
    assert robot.report.hold == 'no chunk'
