# SPDX-License-Identifier: Apache-2.0
"""A brain node before a scripted LLM server, for tests of the graph."""

import asyncio
import threading
from typing import Any

import openai
from rclpy.action import ActionClient

from xinfer_ros.action import RunEpisode, RunSkill
from xinfer_ros.brain.scripted_engine import ScriptedCosts
from xinfer_ros.brain.scripted_server import ScriptedServer
from xinfer_ros.msg import BrainState
from xinfer_ros.ros import qos

from .graph import Graph, NodeProcess

SAID: Any = [{'role': 'user', 'content': 'pick up the cube'}]


class LlmThread:
    """A scripted LLM server in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server: ScriptedServer = self._do(self._start())

    async def _start(self) -> ScriptedServer:
        server = ScriptedServer(ScriptedCosts())
        await server.start()
        return server

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def freeze(self) -> None:
        """Let it give no token any more."""
        self._loop.call_soon_threadsafe(self.server.engine.freeze)

    def thaw(self) -> None:
        """Let it go on."""
        self._loop.call_soon_threadsafe(self.server.engine.thaw)

    def close(self) -> None:
        """End it."""
        self._do(self.server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Goal:
    """
    A goal of the test, with everything that comes back.

    :param graph: that is spun
    :param client: of the action
    :param request: the goal
    """

    def __init__(self, graph: Graph, client: ActionClient, request: Any) -> None:
        self._graph = graph
        self.feedback: list[Any] = []
        graph.until(client.server_is_ready, 'the action is offered')
        sent = client.send_goal_async(request, lambda m: self.feedback.append(m.feedback))
        graph.until(sent.done, 'the goal is answered')
        self.handle = sent.result()
        self.accepted = self.handle.accepted
        self._result = self.handle.get_result_async() if self.accepted else None

    @property
    def is_over(self) -> bool:
        """Return whether the result has come."""
        return self._result is not None and self._result.done()

    @property
    def result(self) -> Any:
        """Return the result, waiting for it."""
        assert self._result is not None
        self._graph.until(self._result.done, 'the result comes')
        return self._result.result().result

    @property
    def status(self) -> int:
        """Return the last status, a constant of action_msgs/GoalStatus."""
        assert self._result is not None
        return int(self._result.result().status)

    def cancel(self) -> None:
        """Cancel it."""
        self._graph.until(self.handle.cancel_goal_async().done, 'the goal is being cancelled')


class BrainBench:
    """
    A brain node with its LLM server.

    :param graph: where it lives
    :param parameters: of the node, ``NAME:=VALUE`` each
    """

    def __init__(self, graph: Graph, *parameters: str) -> None:
        self._graph = graph
        self.llm = LlmThread()
        given = ['port:=0', f'upstreams:=["{self.llm.server.url}"]', *parameters]
        pairs = [part for parameter in given for part in ('-p', parameter)]
        self.node: NodeProcess = graph.run('brain_main', '--ros-args', *pairs)
        self._episodes = self._client(RunEpisode, '/fleet/run_episode')
        self._skills = self._client(RunSkill, '/fleet/run_skill')
        graph.be_known('/fleet/xinfer_brain')

    def _client(self, kind: Any, name: str) -> ActionClient:
        return ActionClient(self._graph.node, kind, name, result_service_qos_profile=qos.RESULTS)

    def episode(self, robot: str, **wish: Any) -> Goal:
        """Ask for an episode."""
        return Goal(self._graph, self._episodes, RunEpisode.Goal(robot_id=robot, **wish))

    def skill(self, robot: str, **wish: Any) -> Goal:
        """Ask for a skill."""
        return Goal(self._graph, self._skills, RunSkill.Goal(robot_id=robot, **wish))

    def states(self, robot: str) -> list[BrainState]:
        """Return a list that gets every state of a robot's brain."""
        states: list[BrainState] = []
        self._graph.node.create_subscription(
            BrainState, f'/{robot}/brain_state', states.append, qos.STATE
        )
        return states

    @staticmethod
    def ask(base_url: str, robot: str = '') -> Any:
        """
        Let an agent take a turn.

        :param robot: that it names, if any
        """
        headers = {'X-Robot-ID': robot} if robot else {}
        with openai.OpenAI(
            base_url=base_url, api_key='none', max_retries=0, default_headers=headers
        ) as agent:
            return agent.chat.completions.create(model='brain', messages=SAID, max_tokens=4)

    def close(self) -> None:
        """End it."""
        self._episodes.destroy()
        self._skills.destroy()
        self.llm.close()
