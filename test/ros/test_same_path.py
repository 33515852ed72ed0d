# SPDX-License-Identifier: Apache-2.0
"""What is computed for a robot is what would be computed without ROS, from camera to action."""

import hashlib
import itertools
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from rclpy.serialization import deserialize_message, serialize_message
from robot.in_process_server import InProcessServer
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import CompressedImage, JointState

from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.slot_writer import write_slot
from xinfer_ros.episodes.bag import Bag, RecordedMessage
from xinfer_ros.episodes.sources import shipped_episodes
from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import make_model
from xinfer_ros.msg import Observation as ObservationMsg
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.ros import convert

from .graph import EPISODES, Graph
from .scripted_robot import CONTRACT, SPACING_NS, ScriptedRobot

NUM_OBSERVATIONS = 100
EVERY = 9  # of the 900 keyframes, so 102
CAMERAS = tuple(camera.name for camera in CONTRACT.cameras)
JOINTS = tuple(reversed(CONTRACT.joint_names))  # the robot's own order
TYPES = get_typestore(Stores.ROS2_KILTED)


@dataclass(frozen=True, kw_only=True)
class Keyframe:
    """
    One recorded instant.

    :param messages: serialised message of each topic
    :param instruction: the task of its episode
    """

    messages: dict[str, bytes]
    instruction: str

    def picture(self, camera: str) -> bytes:
        """Return the serialised picture of a camera."""
        return self.messages[f'/{camera}/image_raw/compressed']


def recorded() -> Iterator[Keyframe]:
    """Yield every ninth keyframe of the shipped episodes."""
    for name in shipped_episodes(EPISODES):
        with Bag(EPISODES / name) as bag:
            messages = tuple(bag.messages())
        task = next(message for message in messages if message.topic == '/task')
        instruction = TYPES.deserialize_cdr(task.data, 'std_msgs/msg/String').data
        rest = [message for message in messages if message.topic != '/task']
        grouped = itertools.groupby(rest, key=_offset_ns)
        frames = [{message.topic: message.data for message in group} for _, group in grouped]
        for topics in frames[::EVERY]:
            yield Keyframe(messages=topics, instruction=instruction)


def _offset_ns(message: RecordedMessage) -> int:
    return message.offset_ns


class Asked:
    """
    One question, put once in plain values and once as the executor node puts it.

    :param keyframe: what the robot sees
    :param draft: what its executor adds
    """

    def __init__(self, keyframe: Keyframe, draft: RequestDraft) -> None:
        self._keyframe, self._draft = keyframe, draft

    def direct(self) -> Observation:
        """Return the observation without any part of ROS; rosbags reads the recording."""
        draft, keyframe = self._draft, self._keyframe
        joints = TYPES.deserialize_cdr(
            keyframe.messages['/joint_states'], 'sensor_msgs/msg/JointState'
        )
        position = dict(zip(joints.name, joints.position, strict=True))
        return Observation(
            session=draft.session,
            episode=draft.episode,
            request_id=draft.request_id,
            executed_steps=draft.executed_steps,
            instruction=keyframe.instruction,
            joint_names=JOINTS,
            state=np.array([position[name] for name in JOINTS], np.float32),
            images=tuple(self._frame(camera) for camera in CAMERAS),
            budget_ns=draft.budget_ns,
            minimum_period_ns=draft.minimum_period_ns,
            commitment_steps=draft.commitment_steps,
            keyframe_spacing_ns=SPACING_NS,
            leftover=draft.leftover,
        )

    def _frame(self, camera: str) -> CameraFrame:
        picture = TYPES.deserialize_cdr(
            self._keyframe.picture(camera), 'sensor_msgs/msg/CompressedImage'
        )
        return CameraFrame(
            name=camera,
            compressed=True,
            encoding=picture.format,
            height=0,
            width=0,
            step=0,
            is_bigendian=False,
            data=picture.data.tobytes(),
        )

    def message(self) -> Any:
        """Return the observation as the executor node publishes it."""
        keyframe = self._keyframe
        joints = deserialize_message(keyframe.messages['/joint_states'], JointState)
        position = dict(zip(joints.name, joints.position, strict=True))
        frames = [
            convert.camera_frame(
                camera,
                deserialize_message(keyframe.picture(camera), CompressedImage),
                compressed=True,
            )
            for camera in CAMERAS
        ]
        state = [position[name] for name in JOINTS]
        message = convert.from_draft(self._draft, JOINTS, state, frames)
        message.instruction = keyframe.instruction
        message.keyframe_spacing_ns = SPACING_NS
        message.stamp.sec = 1  # any clock will do, but none will not
        return message


def _hash(slots: SlotArrays, slot: int) -> str:
    """Return a hash of every input of a slot."""
    names = [field.name for field in fields(slots) if field.name not in ('images', 'actions')]
    inputs = [*slots.images, *(getattr(slots, name) for name in names)]
    digest = hashlib.sha256()
    for values in inputs:
        digest.update(np.ascontiguousarray(values[slot]).tobytes())
    return digest.hexdigest()


def _rows(message: Any) -> npt.NDArray[np.float32]:
    return np.array(message.rows, np.float32).reshape(message.num_rows, -1)


def _draft(robot: Robot, number: int, before: npt.NDArray[np.float32] | None) -> RequestDraft:
    """Return what an executor adds: of every third request nothing is left over."""
    leftover = np.zeros((0, len(JOINTS)), np.float32)
    if before is not None and number % 3:
        leftover = np.ascontiguousarray(before[1 + number % 7 :])
    return RequestDraft(
        session=robot.session,
        episode=0,
        request_id=number,
        executed_steps=3 * number,
        leftover=leftover,
        commitment_steps=min(number % 10, len(leftover)),
        budget_ns=5_000_000_000,
        minimum_period_ns=180_000_000,
    )


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch compute here with one thread, as the engine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures('one_thread')
def test_server_computes_what_would_be_computed_without_ros(graph: Graph) -> None:
    """
    SL-08: 100 recorded observations, in-process and through a server node.

    Serialised, deserialised, converted and written, the inputs of the model hash equal; the
    actions differ by no more than 1e-5.
    """
    graph.server('-p', 'model:=tiny', '-p', 'spare_engine:=false', '-p', 'lease_s:=30.0')
    offline = InProcessServer(make_model('tiny'))
    offline.model.warm_up()
    remote = ScriptedRobot(graph, 'r0')
    remote.register(joint_names=list(JOINTS))
    robot = offline.register(joint_names=JOINTS, keyframe_spacing_ns=SPACING_NS)
    robot.session = remote.session  # noise depends on session and request
    rows: npt.NDArray[np.float32] | None = None
    hashes, worst = set[str](), 0.0
    for number, keyframe in enumerate(itertools.islice(recorded(), NUM_OBSERVATIONS), 1):
        asked = Asked(keyframe, _draft(robot, number, rows))
        message = asked.message()
        received = deserialize_message(serialize_message(message), ObservationMsg)
        write_slot(offline.life, 1, robot, convert.to_observation(received))
        answer = offline.answer(robot, asked.direct(), slot=0)
        assert _hash(offline.slots, 0) == _hash(offline.slots, 1), f'observation {number}'
        hashes.add(_hash(offline.slots, 0))
        chunk = remote.answer_to(remote.send(message))
        assert (chunk.reason, chunk.detail) == (Reason.OK, '')
        assert (chunk.frozen_steps, chunk.degraded) == (answer.frozen_steps, answer.degraded)
        assert tuple(chunk.joint_names) == answer.joint_names == JOINTS
        rows = answer.rows
        worst = max(worst, float(np.abs(_rows(chunk) - rows).max()))
    assert len(hashes) == NUM_OBSERVATIONS
    assert worst <= 1e-5

    message.images = message.images[:2]
    message.request_id += 1
    refused = remote.answer_to(remote.send(message))
    assert refused.reason == Reason.MISSING_CAMERA
    assert 'no picture of right_wrist' in refused.detail
    message.images, message.request_id = asked.message().images, message.request_id + 1
    message.state = array('f', message.state[:5])
    refused = remote.answer_to(remote.send(message))
    assert refused.reason == Reason.REJECTED_STATE
    assert 'expected float32 of shape (14,); received float32 of shape (5,)' in refused.detail
