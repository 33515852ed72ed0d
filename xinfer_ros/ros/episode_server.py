# SPDX-License-Identifier: Apache-2.0
"""The ROS action RunEpisode."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node

from xinfer_ros.action import RunEpisode
from xinfer_ros.brain.gateway.episode import EpisodeRequest, EpisodeView, Outcome, Phase
from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.config import BrainConfig
from xinfer_ros.errors import Rejected
from xinfer_ros.ros.brain_display import BrainDisplay
from xinfer_ros.ros.brain_robots import BrainRobots, name_fault
from xinfer_ros.ros.long_action import LongAction, LongGoal
from xinfer_ros.ros.parameters import steady_clock
from xinfer_ros.ros.relay import Relay

REFRESH_S = 1.0
FREE_S = 5.0  # between two looks for robots whose brain node is gone
END = 'the brain node ends'


@dataclass(slots=True, kw_only=True)
class OpenEpisode:
    """
    An episode that a goal has opened.

    :param goal: that waits for its end
    :param let_die: ends that signs of life of its robot count
    :param view: as it was heard of last
    """

    goal: LongGoal
    let_die: Callable[[], None]
    view: EpisodeView | None = None


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
        self._open: dict[str, OpenEpisode] = {}
        self._display = BrainDisplay(robots)
        self._action = LongAction(
            node, RunEpisode, 'run_episode', check=_why_refused, begin=self._begin,
            cancel=self._cancel,
        )  # fmt: skip
        self._logger = node.get_logger()
        node.create_timer(REFRESH_S, lambda: host.refresh(self._post), clock=steady_clock())
        node.create_timer(FREE_S, robots.free, clock=steady_clock())
        host.listen(self._post)

    def _post(self, view: EpisodeView) -> None:
        self._relay.post(lambda: self._changed(view))

    def _begin(self, goal: LongGoal) -> None:
        request = goal.request
        robot = request.robot_id.replace('/', '.')
        episode_id = f'{robot}-{secrets.token_hex(4)}'

        def lives(is_heartbeat: bool) -> None:
            self._host.alive(episode_id, is_heartbeat=is_heartbeat)

        let_die = self._robots[request.robot_id].feel(lives)
        self._open[episode_id] = OpenEpisode(goal=goal, let_die=let_die)
        wish = EpisodeRequest(
            episode=episode_id,
            robot=robot,
            task=request.task,
            priority=request.priority,
            max_wait_ns=request.max_wait_ns or round(self._config.max_wait_s * 1e9),
            context_hint=request.context_hint or None,
        )
        self._host.open(
            wish, lambda refusal: self._relay.post(lambda: self._refused(episode_id, refusal))
        )

    def _cancel(self, goal: LongGoal) -> None:
        for episode_id, episode in self._open.items():
            if episode.goal is goal:
                self._host.end(episode_id)

    def _refused(self, episode_id: str, refusal: Rejected) -> None:
        result = RunEpisode.Result(
            outcome=int(Outcome.NOT_ADMITTED), detail=str(refusal), episode_id=episode_id
        )
        self._end(episode_id, result, good=False)

    def _changed(self, view: EpisodeView) -> None:
        self._display.changed(view)
        episode = self._open.get(view.episode)
        if episode is None:
            return
        episode.view = view
        if view.phase is not Phase.ENDED:
            episode.goal.feedback(self._feedback(view))
            return
        self._logger.info(f'episode {view.episode}: {view.detail}, {view.turns} turns')
        result = _result(view, view.outcome or Outcome.ENDED, view.detail)
        self._end(view.episode, result, good=view.outcome is Outcome.ENDED)

    def _end(self, episode_id: str, result: Any, *, good: bool) -> None:
        episode = self._open.pop(episode_id, None)
        if episode is not None:  # else the node ends, and has ended it
            episode.let_die()
            episode.goal.end(result, good=good)

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
        """End every goal, since the node ends; its robots wait for no brain any more."""
        for episode_id, episode in list(self._open.items()):
            view = episode.view
            result = RunEpisode.Result(
                outcome=int(Outcome.SHUTDOWN), detail=END, episode_id=episode_id
            )
            if view is not None:
                result = _result(view, Outcome.SHUTDOWN, END)
            self._end(episode_id, result, good=False)
        self._display.end(END)

    @property
    def num_goals(self) -> int:
        """Return how many goals do not have their result yet."""
        return self._action.num_goals

    def close(self) -> None:
        """Remove the action."""
        self._action.close()


def _why_refused(request: Any) -> str:
    if fault := name_fault(request.robot_id):
        return fault
    if request.max_wait_ns < 0:
        return f'max_wait_ns is {request.max_wait_ns}; allowed: 0 or more'
    return ''


def _result(view: EpisodeView, outcome: Outcome, detail: str) -> Any:
    return RunEpisode.Result(
        outcome=int(outcome),
        detail=detail,
        episode_id=view.episode,
        turns=view.turns,
        prompt_tokens=view.prompt_tokens,
        cached_tokens=view.cached_tokens,
        output_tokens=view.output_tokens,
        parked_ns=view.parked_ns,
    )
