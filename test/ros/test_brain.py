# SPDX-License-Identifier: Apache-2.0
"""Episodes of LLM brains as a ROS action, with a real gateway and a scripted LLM."""

from collections.abc import Iterator

import openai
import pytest
from action_msgs.msg import GoalStatus
from std_msgs.msg import Empty

from xinfer_ros.action import RunEpisode
from xinfer_ros.msg import BrainState, ExecutorState
from xinfer_ros.ros import qos

from .brain_bench import BrainBench
from .graph import Graph

Phase = RunEpisode.Feedback


@pytest.fixture
def bench(graph: Graph) -> Iterator[BrainBench]:
    """Give a brain node with one place, and short leases."""
    bench = BrainBench(
        graph, 'controller:=static', 'static_episodes:=1', 'lease_s:=3.0',
        'progress_timeout_s:=2.0', 'probe_period_s:=0.5',
    )  # fmt: skip
    try:
        yield bench
    finally:
        bench.close()


def test_an_episode_is_admitted_used_and_ended_by_cancelling(
    graph: Graph, bench: BrainBench
) -> None:
    states = bench.states('r0')
    goal = bench.episode('r0', task='tidy up')
    graph.until(lambda: goal.feedback and goal.feedback[-1].state == Phase.ADMITTED, 'a place')
    base_url = goal.feedback[-1].base_url
    assert base_url.endswith(f'/e/{goal.feedback[-1].episode_id}/v1')
    assert bench.ask(base_url).usage.completion_tokens == 4
    graph.until(lambda: states and states[-1].state == BrainState.ADMITTED, 'the robot is told')
    goal.cancel()
    result = goal.result
    assert goal.status == GoalStatus.STATUS_CANCELED
    assert (result.outcome, result.turns, result.output_tokens) == (RunEpisode.Result.ENDED, 1, 4)
    graph.until(lambda: states[-1].state == BrainState.NONE, 'the robot has no episode')
    with pytest.raises(openai.APIStatusError):
        openai.OpenAI(base_url=f'{base_url}/../nothing', api_key='x', max_retries=0).models.list()


def test_a_second_episode_waits_its_turn_and_a_dead_robot_frees_its_place(
    graph: Graph, bench: BrainBench
) -> None:
    """BG-02: the first robot gives no sign of life, the second one does."""
    alive = graph.node.create_publisher(Empty, '/r1/brain_heartbeat', 10)
    first = bench.episode('r0')
    graph.until(lambda: first.feedback, 'the first is heard of')
    states = bench.states('r1')
    second = bench.episode('r1', max_wait_ns=60 * 10**9)
    graph.node.create_timer(0.3, lambda: alive.publish(Empty()))
    graph.until(lambda: states and states[-1].state == BrainState.QUEUED, 'it waits')
    assert states[-1].position == 1
    result = first.result
    assert result.outcome == RunEpisode.Result.LEASE_EXPIRED
    assert first.status == GoalStatus.STATUS_ABORTED
    graph.until(
        lambda: second.feedback and second.feedback[-1].state == Phase.ADMITTED, 'its turn comes'
    )
    assert not second.is_over


def test_who_gets_no_place_in_time_is_told(graph: Graph, bench: BrainBench) -> None:
    bench.episode('r0')
    result = bench.episode('r1', max_wait_ns=10**9).result
    assert result.outcome == RunEpisode.Result.NOT_ADMITTED
    assert 'no place became free' in result.detail


def test_a_frozen_llm_is_told_to_the_robot_and_so_is_its_return(
    graph: Graph, bench: BrainBench
) -> None:
    """BG-03 over the graph."""
    goal = bench.episode('r0')
    states = bench.states('r0')
    graph.until(lambda: states and states[-1].state == BrainState.ADMITTED, 'it may ask')
    graph.until(lambda: goal.feedback, 'feedback comes')
    bench.llm.freeze()
    with pytest.raises(openai.InternalServerError, match='BRAIN_UNAVAILABLE'):
        bench.ask(goal.feedback[-1].base_url)
    graph.until(lambda: states[-1].state == BrainState.BRAIN_UNAVAILABLE, 'the robot is told')
    assert 'nothing has come' in states[-1].detail
    graph.until(lambda: goal.feedback[-1].state == Phase.BRAIN_UNAVAILABLE, 'and its agent')
    bench.llm.thaw()
    graph.until(lambda: states[-1].state == BrainState.ADMITTED, 'it may ask again')
    assert bench.ask(goal.feedback[-1].base_url).usage is not None


@pytest.mark.parametrize('robot', ['', '/r0', 'a b', 'r' * 101])
def test_a_goal_for_no_robot_is_refused(graph: Graph, bench: BrainBench, robot: str) -> None:
    assert not bench.episode(robot).accepted
    graph.until(lambda: 'allowed: the namespace of a robot' in bench.node.output, 'it says why')
    assert not bench.skill(robot, task='pick', timeout_ns=10**9).accepted
    assert bench.episode('r' * 100).accepted  # the longest name that has its topics and episodes


def test_the_end_of_the_node_is_the_end_of_its_goals_which_all_get_their_result(
    graph: Graph,
) -> None:
    bench = BrainBench(graph)
    try:
        states = bench.states('r0')
        goals = [bench.episode(f'r{number}') for number in range(15)]
        first = goals[0]
        graph.until(lambda: all(goal.feedback for goal in goals), 'all are heard of')
        bench.ask(first.feedback[-1].base_url)
        heard = len(first.feedback)
        graph.until(lambda: len(first.feedback) > heard + 2, 'the turn is known')
        bench.node.process.terminate()
        assert [goal.result.outcome for goal in goals] == 15 * [RunEpisode.Result.SHUTDOWN]
        assert (first.result.turns, first.result.output_tokens) == (1, 4)
        assert bench.node.end() == 0
        graph.until(lambda: states[-1].state == BrainState.NONE, 'its robot waits for no brain')
        assert states[-1].detail == 'the brain node ends'
    finally:
        bench.close()


def test_a_goal_is_cancelled_while_it_waits(graph: Graph, bench: BrainBench) -> None:
    bench.episode('r0')
    second = bench.episode('r1')
    graph.until(lambda: second.feedback, 'it waits')
    second.cancel()
    assert second.result.outcome == RunEpisode.Result.ENDED
    assert second.status == GoalStatus.STATUS_CANCELED


def test_a_robot_that_reports_keeps_the_episode_of_a_dead_agent_for_a_while_only(
    graph: Graph,
) -> None:
    bench = BrainBench(graph, 'lease_s:=1.5', 'agent_idle_s:=1.0', 'idle_lease_s:=1.5')
    try:
        reports = graph.node.create_publisher(ExecutorState, '/r0/executor_state', qos.CHUNK)
        graph.node.create_timer(0.3, lambda: reports.publish(ExecutorState()))
        states = bench.states('r0')
        goal = bench.episode('r0')
        graph.until(lambda: goal.feedback, 'a place')
        base_url = goal.feedback[-1].base_url
        bench.ask(base_url.replace(goal.feedback[-1].episode_id, 'by-path'), robot='r0')
        graph.until(lambda: any(s.episode_id == 'by-path' for s in states), 'both are shown')
        graph.until(lambda: states[-1].state == BrainState.NONE, 'both are over')
        assert goal.result.outcome == RunEpisode.Result.LEASE_EXPIRED
    finally:
        bench.close()


def test_a_robot_whose_brain_node_is_gone_is_told_that_it_has_no_episode(
    graph: Graph, bench: BrainBench
) -> None:
    """A brain node that was killed left it waiting; the next one knows of no episode."""
    states = bench.states('r0')
    graph.until(lambda: states, 'it is told')
    assert (states[0].state, states[0].robot_id) == (BrainState.NONE, 'r0')


def test_a_wrong_setting_stops_the_start(graph: Graph) -> None:
    node = graph.run('brain_main', '--ros-args', '-p', 'controler:=open')
    graph.until(lambda: node.process.poll() is not None, 'it ends')
    assert node.process.returncode == 2
    graph.until(lambda: 'did you mean controller?' in node.output, 'it says why')
