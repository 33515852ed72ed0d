# SPDX-License-Identifier: Apache-2.0
"""The ROS action RunEpisode, and how every brain fares on the topics of its robot."""

import secrets
from typing import Any

from rclpy.node import Node

from xinfer_ros.action import RunEpisode
from xinfer_ros.brain.gateway.episode import EpisodeRequest, EpisodeView, Outcome, Phase
from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.config import BrainConfig
from xinfer_ros.errors import Rejected
from xinfer_ros.msg import BrainState
from xinfer_ros.ros.brain_robots import NAME, BrainRobots, name_fault
from xinfer_ros.ros.long_action import LongAction, LongGoal
from xinfer_ros.ros.relay import Relay

REFRESH_S = 1.0


class EpisodeServer:
    """
    Opens an episode for each goal, and ends the goal with it.

    :param node: the brain node
    :param host: runs the gateway
    :param relay: brings its news into rclpy's thread
    :param robots: their topics
    :param config: settings
    """

    def __init__(
        self, node: Node, host: GatewayHost, relay: Relay, robots: BrainRobots, config: BrainConfig
    ) -> None:
        self._host, self._relay, self._robots, self._config = host, relay, robots, config
        self._goals: dict[str, LongGoal] = {}
        self._shown: dict[str, str] = {}  # episode that is shown, by robot
        self._action = LongAction(
            node, RunEpisode, 'run_episode', check=_why_refused, begin=self._begin,
            cancel=self._cancel,
        )  # fmt: skip
        self._logger = node.get_logger()
        node.create_timer(REFRESH_S, lambda: host.refresh(self._post))
        host.listen(self._post)

    def _post(self, view: EpisodeView) -> None:
        self._relay.post(lambda: self._changed(view))

    def _begin(self, goal: LongGoal) -> None:
        request = goal.request
        episode_id = f'{request.robot_id.replace("/", ".")}-{secrets.token_hex(4)}'
        self._goals[episode_id] = goal
        self._robots[request.robot_id]  # its signs of life count from now on
        wish = EpisodeRequest(
            episode=episode_id,
            robot=request.robot_id.replace('/', '.'),
            task=request.task,
            priority=request.priority,
            max_wait_ns=request.max_wait_ns or round(self._config.max_wait_s * 1e9),
            context_hint=request.context_hint or None,
        )
        self._host.open(
            wish, lambda refusal: self._relay.post(lambda: self._refused(episode_id, refusal))
        )

    def _cancel(self, goal: LongGoal) -> None:
        for episode_id, known in self._goals.items():
            if known is goal:
                self._host.end(episode_id)

    def _refused(self, episode_id: str, refusal: Rejected) -> None:
        result = RunEpisode.Result(
            outcome=int(Outcome.NOT_ADMITTED), detail=str(refusal), episode_id=episode_id
        )
        self._goals.pop(episode_id).end(result, good=False)

    def _changed(self, view: EpisodeView) -> None:
        goal = self._goals.get(view.episode)
        self._show(view)
        if goal is None:
            return
        if view.phase is not Phase.ENDED:
            goal.feedback(self._feedback(view))
            return
        del self._goals[view.episode]
        self._logger.info(f'episode {view.episode}: {view.detail}, {view.turns} turns')
        goal.end(_result(view), good=view.outcome is Outcome.ENDED)

    def _show(self, view: EpisodeView) -> None:
        """Publish on the robot's topic; of several episodes the one that began last counts."""
        robot_id = view.robot.replace('.', '/')
        if view.robot == view.episode or not NAME.fullmatch(robot_id):
            return
        is_over = view.phase is Phase.ENDED
        if is_over and self._shown.get(robot_id) != view.episode:
            return
        if is_over:
            del self._shown[robot_id]
        elif view.version == 1 or robot_id not in self._shown:
            self._shown[robot_id] = view.episode
        if is_over or self._shown[robot_id] == view.episode:
            self._robots[robot_id].show(_state(robot_id, view))

    def _feedback(self, view: EpisodeView) -> Any:
        return RunEpisode.Feedback(
            state=view.phase.value,
            position=view.position or 0,
            estimate_ns=-1 if view.estimate_ns is None else view.estimate_ns,
            base_url=self._host.base_url(view.episode),
            episode_id=view.episode,
            detail=view.detail,
        )

    def end_all(self) -> None:
        """End every goal, since the node ends."""
        for goal in self._action.goals():
            goal.end(RunEpisode.Result(outcome=int(Outcome.SHUTDOWN)), good=False)
        self._goals.clear()

    def close(self) -> None:
        """Remove the action."""
        self._action.close()


def _why_refused(request: Any) -> str:
    if fault := name_fault(request.robot_id):
        return fault
    if request.max_wait_ns < 0:
        return f'max_wait_ns is {request.max_wait_ns}; allowed: 0 or more'
    return ''


def _state(robot_id: str, view: EpisodeView) -> BrainState:
    is_over = view.phase is Phase.ENDED
    return BrainState(
        robot_id=robot_id,
        episode_id='' if is_over else view.episode,
        state=BrainState.NONE if is_over else view.phase.value + 1,
        position=view.position or 0,
        estimate_ns=-1 if view.estimate_ns is None else view.estimate_ns,
        detail=view.detail,
    )


def _result(view: EpisodeView) -> Any:
    return RunEpisode.Result(
        outcome=int(view.outcome or 0),
        detail=view.detail,
        episode_id=view.episode,
        turns=view.turns,
        prompt_tokens=view.prompt_tokens,
        cached_tokens=view.cached_tokens,
        output_tokens=view.output_tokens,
        parked_ns=view.parked_ns,
    )
