# SPDX-License-Identifier: Apache-2.0
"""How every brain fares, on the topics of its robot."""

from xinfer_ros.brain.gateway.episode import EpisodeView, Phase
from xinfer_ros.msg import BrainState
from xinfer_ros.ros.brain_robots import BrainRobots


class BrainDisplay:
    """
    Publishes the episode of each robot; of several the one that began last counts.

    Episodes that were opened by HTTP are shown if such a robot listens.

    :param robots: their topics
    """

    def __init__(self, robots: BrainRobots) -> None:
        self._robots = robots
        self._views: dict[str, dict[str, EpisodeView]] = {}  # by robot and episode

    def changed(self, view: EpisodeView) -> None:
        """Take in how an episode is, and show it if it counts."""
        if view.robot == view.episode:  # of nobody: an agent without a robot
            return
        robot_id = view.robot.replace('.', '/')
        views = self._views.setdefault(robot_id, {})
        newest = next(reversed(views), view.episode)
        if view.phase is Phase.ENDED:
            views.pop(view.episode, None)
        else:
            newest = view.episode if view.episode not in views else newest
            views[view.episode] = view
        if not views:
            del self._views[robot_id]
        if newest == view.episode and self._robots.has(robot_id):
            counts = next(reversed(views.values()), view)
            self._robots[robot_id].show(_state(robot_id, counts))

    def end(self, why: str) -> None:
        """Tell every robot that its episode is over."""
        for robot_id in self._views:
            if self._robots.has(robot_id):
                self._robots[robot_id].show(
                    BrainState(robot_id=robot_id, estimate_ns=-1, detail=why)
                )
        self._views.clear()


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
