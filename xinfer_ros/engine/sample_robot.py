# SPDX-License-Identifier: Apache-2.0
"""A robot that asks a front end with made-up pictures, to measure what a server gives."""

import cv2
import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot

INSTRUCTION = 'transfer the cube to the other arm'
COMMITMENT_STEPS = 6
SPACING_NS = 30_000_000
JPEG_QUALITY = 65  # pictures of about the length of the shipped episodes'


class SampleRobot:
    """
    One registered robot with JPEG pictures of the sizes that the model takes.

    :param front_end: that it asks; it must be ready
    :param contract: of the model
    :param clock: the server's
    :param name: its id
    :param budget_ns: response budget of every request [ns]
    :param period_ns: least time between two requests, as it tells the server [ns]
    """

    def __init__(
        self,
        front_end: FrontEnd,
        contract: ModelContract,
        clock: Clock,
        name: str,
        *,
        budget_ns: int,
        period_ns: int,
    ) -> None:
        self._front_end, self._contract, self._clock = front_end, contract, clock
        self._budget_ns, self._period_ns = budget_ns, period_ns
        self._frames = sample_frames(contract)
        self._number = 0
        registration = Registration(
            robot_id=name,
            namespace=f'/{name}',
            joint_names=contract.joint_names,
            cameras=tuple(camera.name for camera in contract.cameras),
            keyframe_spacing_ns=SPACING_NS,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=1,
        )
        self.robot: Robot = front_end.register(registration)[0]

    def ask(self) -> None:
        """Submit the next request; its answer goes where the front end's answers go."""
        contract = self._contract
        commitment = min(COMMITMENT_STEPS, contract.max_commitment_steps)
        self._number += 1
        observation = Observation(
            session=self.robot.session,
            episode=0,
            request_id=self._number,
            executed_steps=commitment * self._number,
            instruction=INSTRUCTION,
            joint_names=contract.joint_names,
            state=np.zeros(contract.action_dim, np.float32),
            images=self._frames,
            budget_ns=self._budget_ns,
            minimum_period_ns=self._period_ns,
            commitment_steps=commitment,
            keyframe_spacing_ns=SPACING_NS,
            leftover=np.zeros((contract.horizon - commitment, contract.action_dim), np.float32),
        )
        self._front_end.submit(self.robot, observation, self._clock.now_ns())


def sample_frames(contract: ModelContract) -> tuple[CameraFrame, ...]:
    """Return a JPEG picture of each camera, in the size that the model takes."""
    random = np.random.default_rng(1)
    frames = []
    for camera in contract.cameras:
        coarse = random.integers(0, 256, (14, 20, 3), dtype=np.uint8)
        picture = cv2.resize(coarse, (camera.width, camera.height), interpolation=cv2.INTER_CUBIC)
        options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
        data = cv2.imencode('.jpg', picture, options)[1].tobytes()
        frames.append(
            CameraFrame(
                name=camera.name,
                compressed=True,
                encoding='jpeg',
                height=0,
                width=0,
                step=0,
                is_bigendian=False,
                data=data,
            )
        )
    return tuple(frames)
