# SPDX-License-Identifier: Apache-2.0
"""One websocket robot at the front end: its registration, its requests, its way out."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.answer_router import AnswerRouter, Outlet
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.observation_keys import ObservationKeys
from xinfer_ros.openpi.settings import DoorSettings
from xinfer_ros.openpi.unpacker import Value
from xinfer_ros.openpi.wishes import KEY, Wishes, wishes


class RobotSession:
    """
    Registers under an id, asks under it, and gives it back; one thread.

    :param settings: of the door
    :param front_end: that serves it
    :param router: told where the robot's answers go
    :param clock: the server's monotonic clock
    :param robot_id: until an observation names another one
    :param instance: tells this connection from any other
    :param make_outlet: makes what takes the answers of each registration
    """

    def __init__(
        self,
        settings: DoorSettings,
        front_end: FrontEnd,
        router: AnswerRouter,
        clock: Clock,
        robot_id: str,
        instance: int,
        make_outlet: Callable[[], Outlet],
    ) -> None:
        self._settings, self._front_end, self._router = settings, front_end, router
        self._clock, self._make_outlet = clock, make_outlet
        self._robot_id, self._instance = robot_id, instance
        self._spacing_ns = settings.spacing_ns
        self._contract = front_end.contract()
        self.keys = ObservationKeys(self._contract, settings.keys)
        self.robot: Robot | None = None
        self._requests = 0
        self._played_from: tuple[int, int, int] | None = None  # time, step, rows of its chunk

    @property
    def contract(self) -> ModelContract:
        """Return the contract under which the robot asks."""
        return self._contract

    def join(self) -> Robot:
        """
        Register, or renew the lease.

        :raises Rejected: why not
        """
        robot, _, _ = self._front_end.register(self._registration())
        if robot is not self.robot:
            self._give_back()
            self.robot = robot
            self._router.join(robot, self._make_outlet())
        return robot

    def ask(self, observation: Mapping[str, Value], arrival_ns: int) -> int:
        """
        Submit an observation; the answer comes through the outlet, sooner or later, exactly once.

        :param arrival_ns: server's monotonic clock [ns]
        :returns: the request id of that answer
        :raises Rejected: if it is not even a request of a registered robot
        """
        wish = wishes(observation)
        name, spacing_ns = wish.robot_id or self._robot_id, _ns(wish.spacing_s)
        if (name, spacing_ns or self._spacing_ns) != (self._robot_id, self._spacing_ns):
            self._robot_id, self._spacing_ns = name, spacing_ns or self._spacing_ns
            self.leave()
        robot = self.robot or self.join()
        self._requests += 1
        request = self._request(robot, wish, arrival_ns)
        try:
            found = self.keys.find({k: v for k, v in observation.items() if k != KEY})
        except Rejected as refusal:
            self._front_end.refuse(robot, request, refusal, arrival_ns)
            return self._requests
        request = replace(
            request,
            images=found.images,
            state=found.state,
            instruction=self._settings.prompt if found.prompt is None else found.prompt,
        )
        self._front_end.submit(robot, request, arrival_ns)
        return self._requests

    def answered(self, answer: Answer) -> None:
        """Take in that the robot gets a chunk now, and plays it from its first row."""
        if answer.reason is Reason.OK:
            now_ns = self._clock.now_ns()
            self._played_from = (now_ns, answer.start_step, len(answer.rows))

    def leave(self) -> None:
        """Give the id back, or take in that it is lost; the next request registers anew."""
        self._give_back()
        self.robot = None

    def _give_back(self) -> None:
        if self.robot is not None:
            self._router.leave(self.robot)
            self.robot.leave()

    def _registration(self) -> Registration:
        contract = self._contract
        return Registration(
            robot_id=self._robot_id,
            namespace='',
            joint_names=contract.joint_names,
            cameras=tuple(camera.name for camera in contract.cameras),
            keyframe_spacing_ns=self._spacing_ns,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=self._instance,
            door='websocket',
        )

    def _request(self, robot: Robot, wish: Wishes, arrival_ns: int) -> Observation:
        """Return a request without what the robot sees."""
        settings, leftover = self._settings, wish.leftover
        told = wish.executed_steps
        return Observation(
            session=robot.session,
            episode=wish.episode,
            request_id=self._requests,
            executed_steps=self._executed_steps(arrival_ns) if told is None else told,
            instruction='',
            joint_names=self._contract.joint_names,
            state=np.zeros(0, np.float32),
            images=(),
            budget_ns=_ns(wish.budget_s) or settings.budget_ns,
            minimum_period_ns=_ns(wish.period_s) or settings.period_ns,
            commitment_steps=wish.commitment_steps,
            keyframe_spacing_ns=self._spacing_ns,
            leftover=np.zeros((0, 0), np.float32) if leftover is None else leftover,
        )

    def _executed_steps(self, now_ns: int) -> int:
        """Return what a robot that does not tell has executed, if it plays every row in time."""
        if self._played_from is None:
            return 0
        since_ns, start_step, rows = self._played_from
        return start_step + min((now_ns - since_ns) // self._spacing_ns, rows)


def _ns(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * 1e9)
