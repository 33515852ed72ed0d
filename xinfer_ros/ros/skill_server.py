# SPDX-License-Identifier: Apache-2.0
"""The ROS action RunSkill: a whole skill of a robot, through its executor."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from xinfer_ros.action import RunSkill
from xinfer_ros.brain.skill import Skill, SkillEnd, SkillWish
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.ros.brain_robots import BrainRobot, BrainRobots, name_fault
from xinfer_ros.ros.long_action import LongAction, LongGoal
from xinfer_ros.ros.parameters import steady_clock

LOOK_S = 0.1


class RunningSkill:
    """
    A skill under way on a robot.

    :param goal: what it is for
    :param robot: whose it is
    :param skill: judges its end
    """

    def __init__(self, goal: LongGoal, robot: BrainRobot, skill: Skill, clock: Clock) -> None:
        self.goal, self.robot, self._skill, self._clock = goal, robot, skill, clock
        self._stop_listening: Callable[[], None] = robot.listen(self._on_report)

    def _on_report(self, report: RobotReport) -> None:
        self._skill.reported(report, self._clock.now_ns())
        progress = self._skill.progress(self._clock.now_ns())
        self.goal.feedback(
            RunSkill.Feedback(
                steps=progress.steps,
                elapsed_ns=progress.elapsed_ns,
                motion=report.motion,
                hold=report.hold,
            )
        )
        self.look()

    def look(self) -> None:
        """End the goal if its time has come."""
        end = self._skill.judge(self.robot.task, self._clock.now_ns())
        if end is not None:
            self.end(end)

    def end(self, end: SkillEnd) -> None:
        """End the goal."""
        self._stop_listening()
        self._stop_listening = lambda: None
        if end is SkillEnd.SILENT:  # an executor that starts later must not begin with it
            self.robot.withdraw_task()
        progress = self._skill.progress(self._clock.now_ns())
        result = RunSkill.Result(
            outcome=int(end),
            detail=end.words,
            steps=progress.steps,
            starved_ticks=progress.starved_ticks,
            elapsed_ns=progress.elapsed_ns,
        )
        self.goal.end(result, good=end in (SkillEnd.DONE, SkillEnd.TIMEOUT))


class SkillServer:
    """
    Gives robots the task of a skill, and looks when it is over; one skill a robot.

    :param node: the brain node
    :param robots: their topics
    :param clock: the steady clock
    """

    def __init__(self, node: Node, robots: BrainRobots, clock: Clock) -> None:
        self._robots, self._clock = robots, clock
        self._running: dict[bytes, RunningSkill] = {}
        self._action = LongAction(
            node, RunSkill, 'run_skill', check=_why_refused, begin=self._begin, cancel=self._cancel
        )
        node.create_timer(LOOK_S, self._look, clock=steady_clock())

    def _begin(self, goal: LongGoal) -> None:
        request = goal.request
        robot = self._robots[request.robot_id]
        for other in self._live():
            if other.robot is robot:
                other.end(SkillEnd.REPLACED)
        robot.set_task(request.task)
        wish = SkillWish(
            task=request.task,
            until_still=request.until == RunSkill.Goal.UNTIL_STILL,
            timeout_ns=request.timeout_ns,
            max_steps=request.max_steps or None,
        )
        skill = Skill(wish, self._clock.now_ns())
        self._running[goal.key] = RunningSkill(goal, robot, skill, self._clock)

    def _live(self) -> list[RunningSkill]:
        self._running = {k: s for k, s in self._running.items() if not s.goal.is_over}
        return list(self._running.values())

    def _look(self) -> None:
        for skill in self._live():
            skill.look()

    def _cancel(self, goal: LongGoal) -> None:
        if goal.key in self._running:  # else it has ended in this moment
            self._running[goal.key].end(SkillEnd.CANCELLED)

    def end_all(self) -> None:
        """End every goal, since the node ends."""
        for skill in self._live():
            skill.end(SkillEnd.SHUTDOWN)

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
    if request.timeout_ns <= 0 or not request.task:
        return (
            f'task is {request.task!r}, timeout_ns {request.timeout_ns}; a task and a time of '
            'more than 0 are needed'
        )
    if request.until not in (RunSkill.Goal.UNTIL_TIMEOUT, RunSkill.Goal.UNTIL_STILL):
        return f'until is {request.until}; allowed: UNTIL_TIMEOUT (0), UNTIL_STILL (1)'
    return ''
