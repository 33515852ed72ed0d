# SPDX-License-Identifier: Apache-2.0
"""Both tiers of one robot: its executor sees the brain, and runs skills; RPent gets chunks."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pytest
from std_msgs.msg import String

from xinfer_ros.action import RunSkill
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.msg import BrainState, ExecutorState, Observation
from xinfer_ros.ros import qos

from .brain_bench import BrainBench
from .graph import EPISODES, Graph
from .scripted_server import Listener, ScriptedServer

ROBOT = ('--robot', f'r0={EPISODES}/transfer_cube_0@0')
END = RunSkill.Result


@pytest.fixture
def bench(graph: Graph) -> Iterator[BrainBench]:
    """Give a brain node that admits everybody."""
    bench = BrainBench(graph, 'controller:=open')
    try:
        yield bench
    finally:
        bench.close()


@pytest.mark.parametrize('wait', ['keep', 'hold'])
def test_a_parked_brain_is_seen_by_the_executor_which_keeps_its_task_or_holds(
    graph: Graph, wait: str
) -> None:
    """BG-03: robots keep the last task or pause, by configuration."""
    brain = graph.node.create_publisher(BrainState, '/r0/brain_state', qos.STATE)
    ScriptedServer(graph)
    robot = Listener(graph)
    graph.run('robots_main', *ROBOT, '--ros-args', '-p', f'brain_wait:={wait}')
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    assert robot.report.brain == ''
    state = BrainState(robot_id='r0', episode_id='e1', state=BrainState.PARKED, detail='no room')
    graph.node.create_timer(0.5, lambda: brain.publish(state))
    graph.until(lambda: robot.report.brain == 'PARKED: no room', 'it sees its brain')
    if wait == 'hold':
        words = 'the brain waits: PARKED: no room'
        graph.until(lambda: robot.report.hold == words, 'it holds')
        assert robot.report.state == ExecutorState.HOLDING
        state.state = BrainState.ADMITTED
    chunks = robot.report.chunks
    graph.until(lambda: robot.report.chunks > chunks + 2, 'it moves')
    assert robot.report.hold == ''


def test_a_skill_runs_through_the_executor_until_its_steps_are_done(
    graph: Graph, bench: BrainBench
) -> None:
    server = ScriptedServer(graph)
    robot = Listener(graph)
    graph.run('robots_main', *ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    goal = bench.skill('r0', task='pick up the red cube', timeout_ns=60 * 10**9, max_steps=60)
    graph.until(
        lambda: server.requests[-1].instruction == 'pick up the red cube', 'the model is told'
    )
    result = goal.result
    assert result.outcome == END.DONE
    assert result.steps >= 60
    assert any(0 < feedback.steps < 60 for feedback in goal.feedback)


def test_a_skill_ends_with_its_time_or_with_the_next_one(graph: Graph, bench: BrainBench) -> None:
    ScriptedServer(graph)
    robot = Listener(graph)
    graph.run('robots_main', *ROBOT)
    graph.until(lambda: robot.report is not None and robot.report.chunks > 2, 'the robot moves')
    first = bench.skill('r0', task='one', timeout_ns=60 * 10**9)
    graph.until(lambda: first.feedback, 'it runs')
    second = bench.skill('r0', task='two', timeout_ns=2 * 10**9)
    assert first.result.outcome == END.REPLACED
    assert second.result.outcome == END.TIMEOUT
    third = bench.skill('r0', task='three', timeout_ns=60 * 10**9)
    third.cancel()
    assert third.result.outcome == END.CANCELLED
    fourth = bench.skill('r0', task='four', timeout_ns=60 * 10**9)
    other = graph.node.create_publisher(String, '/r0/task', 10)
    graph.node.create_timer(0.3, lambda: other.publish(String(data='another')))
    assert fourth.result.outcome == END.REPLACED
    tasks: list[Any] = []
    graph.node.create_subscription(String, '/r0/task', tasks.append, qos.STATE)
    graph.spin(1.0)
    # an executor that starts anew does not begin with what is over
    assert 'four' not in [task.data for task in tasks]


def test_a_skill_of_a_robot_that_is_not_there_is_told_so(graph: Graph, bench: BrainBench) -> None:
    assert bench.skill('nobody', task='pick', timeout_ns=60 * 10**9).result.outcome == END.SILENT
    tasks: list[Any] = []
    graph.node.create_subscription(String, '/nobody/task', tasks.append, qos.STATE)
    states = bench.states('nobody')
    graph.until(lambda: states, 'its topics are found')
    graph.spin(0.5)
    assert not tasks  # it does not begin with the task of a skill that has failed
    for wrong in ({'task': ''}, {'timeout_ns': 0}, {'until': 9}):
        wish = {'task': 'pick', 'timeout_ns': 10**9, **wrong}
        assert not bench.skill('r0', **wish).accepted


def test_rpent_gets_the_chunks_of_the_fleet_server(graph: Graph) -> None:
    """One chunk a call, with the joints in RPent's order, over a real server."""
    names = list(reversed(echo_contract().joint_names))
    graph.server()
    # a recorder listens: it is not taken for the server
    graph.node.create_subscription(
        Observation, '/rpent_0/observation', lambda message: None, qos.OBSERVATION
    )
    node = BrainBench(
        graph, 'rpent_port:=18101', f'rpent_joint_names:={json.dumps(names)}',
        'rpent_budget_s:=5.0',
    )  # fmt: skip
    try:
        graph.until(lambda: '--vla-endpoint' in node.node.output, 'the endpoint listens')
        with ThreadPoolExecutor(1) as pool:
            for _ in range(2):
                answer = pool.submit(_predict, len(names))
                graph.until(answer.done, 'a chunk comes', 60.0)
                facts = answer.result()
                assert facts['ok'], facts
                rows = np.array(facts['result']['actions'])[0]
                assert rows.shape == (echo_contract().horizon, len(names))
                # echo moves one joint, and repeats the others as they were measured
                np.testing.assert_allclose(rows[0][1:], np.arange(1, 14) / 100, atol=1e-5)
            answer = pool.submit(_predict, 3)
            graph.until(answer.done, 'it is refused')
            assert 'REJECTED_STATE: 3 numbers for 14 joints' in answer.result()['error']
    finally:
        node.close()


def _predict(joints: int) -> Any:
    picture = cv2.imencode('.png', np.full((48, 64, 3), 90, np.uint8))[1].tobytes()
    block = {'format': 'png', 'data': base64.b64encode(picture).decode()}
    kwargs = {
        'instruction': 'pick',
        'images': {'main': block, 'wrist': block, 'extra': block},
        'state': [[i / 100 for i in range(joints)]],
    }
    body = json.dumps({'method': 'predict', 'args': [], 'kwargs': kwargs}).encode()
    with urllib.request.urlopen('http://127.0.0.1:18101/call', body, timeout=60) as got:
        return json.loads(got.read())
