# SPDX-License-Identifier: Apache-2.0
"""The executor node against a server that a test speaks by hand, and against the real one."""

from array import array
from typing import Any

import numpy as np
from std_msgs.msg import UInt32

from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.msg import Budget, ExecutorState, ServerState
from xinfer_ros.ros import qos

from .graph import EPISODES, Graph
from .scripted_server import Listener, ScriptedServer

ROBOT = f'r0={EPISODES}/transfer_cube_0@0'
CONTRACT = echo_contract()


def test_rows_of_a_chunk_become_commands_by_joint_name(graph: Graph) -> None:
    """CQ-11 at the executor: the chunk's columns are in another order than the robot's joints."""
    server, robot = ScriptedServer(graph), Listener(graph)
    server.answers = False
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: server.requests, 'the robot asks')
    request = server.requests[-1]
    assert [image.name for image in request.images] == [c.name for c in CONTRACT.cameras]
    assert request.instruction
    names = list(reversed(request.joint_names))
    rows = np.tile(np.arange(14, dtype=np.float32), (16, 1))
    server.send(server.chunk(request, joint_names=names, rows=array('f', rows.tobytes())))
    graph.until(lambda: robot.commands, 'commands are published')
    command = robot.commands[0]
    assert list(command.joint_names) == list(request.joint_names)
    np.testing.assert_allclose(command.points[0].positions, np.arange(14)[::-1])
    assert command.points[0].time_from_start.nanosec == 30_000_000


def test_a_lost_request_is_asked_anew_and_never_blocks_the_robot(graph: Graph) -> None:
    """CQ-04: the first ever and five in a row are lost; a new id each time, then motion."""
    server, robot = ScriptedServer(graph), Listener(graph)
    server.answers = False
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: len(server.requests) >= 6, 'six requests leave though none is answered')
    ids = [request.request_id for request in server.requests]
    assert ids == sorted(set(ids))
    assert not robot.commands
    server.answers = True
    graph.until(lambda: robot.commands, 'motion begins when the link is back', 2.0)
    graph.until(lambda: robot.report.unanswered >= 5, 'the losses are counted')


def test_a_bad_chunk_is_refused_whole_and_the_queue_goes_on(graph: Graph) -> None:
    """CQ-10, CQ-11, SE-02 at the executor's ingress, over the wire."""
    server, robot = ScriptedServer(graph), Listener(graph)
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    server.answers = False
    rows = np.zeros((16, 14), np.float32)
    rows[5, 3] = np.nan
    wide = array('f', [0.0] * 16 * 32)
    bad: list[tuple[dict[str, Any], Reason]] = [
        ({'rows': array('f', rows.tobytes())}, Reason.REJECTED_ROWS),
        ({'rows': array('f'), 'num_rows': 0}, Reason.REJECTED_ROWS),
        ({'rows': wide}, Reason.REJECTED_COLUMNS),
        ({'joint_names': [f'j{i}' for i in range(14)]}, Reason.REJECTED_COLUMNS),
        ({'keyframe_spacing_ns': 66_700_000}, Reason.REJECTED_SPACING),
        ({'epoch': 999}, Reason.WRONG_EPOCH),
        ({'session': 7}, Reason.WRONG_SESSION),
        ({'start_step': 10**9}, Reason.STALE_CHUNK),
    ]
    for changes, reason in bad:
        before = robot.count(reason)
        seen = len(server.requests)
        graph.until(lambda seen=seen: len(server.requests) > seen, 'the robot asks')
        server.send(server.chunk(server.requests[-1], **changes))
        graph.until(
            lambda reason=reason, before=before: robot.count(reason) > before,
            f'{reason.name} is counted',
        )
    server.answers = True
    chunks = robot.report.chunks
    graph.until(lambda: robot.report.chunks > chunks, 'a good chunk is played again')
    for command in robot.commands:
        assert np.isfinite(command.points[0].positions).all()


def test_a_robot_comes_back_by_itself_when_the_server_was_killed(graph: Graph) -> None:
    """SL-02: rows run out, the robot holds and ticks on, and moves under the new epoch."""
    server, robot = graph.server(), Listener(graph)
    process = graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 5, 'the robot moves')
    old = robot.report
    server.kill()
    graph.until(lambda: robot.report.state == ExecutorState.HOLDING, 'the robot holds')
    held = robot.report
    commands = len(robot.commands)
    graph.until(lambda: len(robot.commands) > commands + 30, 'the last command is repeated')
    last = [tuple(c.points[0].positions) for c in robot.commands[-20:]]
    assert len(set(last)) == 1
    assert robot.report.executed_steps == held.executed_steps
    assert process.process.poll() is None
    graph.server()
    graph.until(lambda: robot.report.chunks > held.chunks, 'motion resumes')
    assert robot.report.epoch != old.epoch
    assert robot.report.misaddressed == 0


def test_a_robot_that_came_before_the_server_is_served_when_it_comes(graph: Graph) -> None:
    """TR-04: the server starts later than the robot."""
    robot = Listener(graph)
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None, 'the robot is up')
    assert robot.report.state == ExecutorState.REGISTERING
    graph.server()
    graph.until(lambda: robot.report.chunks > 0, 'the robot moves')


def test_an_engine_that_dies_is_replaced_and_everybody_is_told(graph: Graph) -> None:
    """What is under way is answered ENGINE_RESTARTED, and the robots go on under a new epoch."""
    import os
    import signal

    states: list[Any] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    graph.server()
    robot = Listener(graph)
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 5, 'the robot moves')
    graph.until(lambda: states and states[-1].state == ServerState.READY, 'the state is known')
    old_epoch, pid = states[-1].epoch, states[-1].engine_pid
    os.kill(pid, signal.SIGKILL)
    graph.until(lambda: states[-1].epoch != old_epoch, 'a new epoch is announced')
    graph.until(lambda: robot.report.epoch == states[-1].epoch, 'the robot is registered there')
    chunks = robot.report.chunks
    graph.until(lambda: robot.report.chunks > chunks, 'the robot moves on')
    assert states[-1].engine_pid not in (0, pid)
    assert robot.report.unanswered == 0


def test_a_budget_message_changes_the_requests_to_come(graph: Graph) -> None:
    server = ScriptedServer(graph)
    publisher = graph.node.create_publisher(Budget, '/r0/budget', qos.BUDGET)
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: server.requests, 'the robot asks')
    assert server.requests[-1].budget_ns == 180_000_000
    graph.until(lambda: publisher.get_subscription_count() > 0, 'the robot hears budgets')
    publisher.publish(Budget(budget_ns=90_000_000, source='planner: insertion'))
    graph.until(lambda: server.requests[-1].budget_ns == 90_000_000, 'the budget is in force')


def test_two_executors_with_one_id_are_told_and_the_first_goes_on(graph: Graph) -> None:
    """LC-03 with real executors: the second says why it does not move, the first loses nothing."""
    from diagnostic_msgs.msg import DiagnosticArray

    said: list[str] = []
    graph.node.create_subscription(
        DiagnosticArray,
        '/diagnostics',
        lambda m: said.extend(f'{s.name} {s.message}' for s in m.status),
        10,
    )
    graph.server()
    robot = Listener(graph)
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    second = graph.run(
        'executor_main', '--ros-args', '-r', '__ns:=/other', '-p', 'robot_id:=r0',
        '-p', 'joint_state_topic:=/r0/joint_states',
    )  # fmt: skip
    graph.until(lambda: 'DUPLICATE_ID' in second.output, 'the second is refused')
    graph.until(
        lambda: (
            any('/other/executor' in t and 'DUPLICATE_ID' in t for t in said)
            and any('/fleet/xinfer_server' in t and 'DUPLICATE_ID' in t for t in said)
        ),
        'both sides say it in diagnostics',
    )
    chunks = robot.report.chunks
    graph.until(lambda: robot.report.chunks > chunks + 3, 'the first goes on')
    assert robot.report.unanswered == 0
    assert robot.report.misaddressed == 0


def test_nothing_of_an_old_episode_is_commanded_in_the_new_one(graph: Graph) -> None:
    """CQ-05 with a real executor: no held command, no old row, no old picture."""
    server, robot = ScriptedServer(graph), Listener(graph)
    episode = graph.node.create_publisher(UInt32, '/r0/episode', 10)  # an ordinary publisher
    graph.run('robots_main', '--robot', ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    graph.until(lambda: episode.get_subscription_count() > 0, 'the robot hears of episodes')
    server.answers = False
    before = robot.report.episode
    episode.publish(UInt32(data=77))
    graph.until(lambda: robot.report.episode == before + 1, 'the episode begins')
    robot.commands.clear()
    reports = len(robot.reports)
    graph.until(lambda: len(robot.reports) > reports + 2, 'the robot has nothing to command')
    assert robot.commands == []
    assert robot.report.state == ExecutorState.HOLDING
    old = server.chunk(server.requests[-1], episode=before)
    server.send(old)
    graph.until(lambda: robot.count(Reason.WRONG_EPISODE) > 0, 'a late answer is refused')
    server.answers = True
    graph.until(lambda: robot.commands, 'the new episode moves')
    assert server.requests[-1].episode == before + 1


def test_every_robot_of_a_process_gets_its_safe_output(graph: Graph) -> None:
    """Also seen (lerobot 2621), with several robots in one process."""
    graph.server()
    robots = [Listener(graph, f'/r{index}') for index in range(2)]
    process = graph.run(
        'robots_main', '--robot', ROBOT, '--robot', ROBOT.replace('r0', 'r1', 1),
        '--ros-args', '-p', 'hold:=safe_pose', '-p', 'safe_pose:=["*=0.25"]',
    )  # fmt: skip
    graph.until(lambda: all(len(robot.commands) > 20 for robot in robots), 'the robots move')
    assert process.end() == 0
    graph.until(
        lambda: all(set(r.commands[-1].points[0].positions) == {0.25} for r in robots),
        'both are led to their safe pose',
        2.0,
    )
