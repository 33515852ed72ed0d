# SPDX-License-Identifier: Apache-2.0
"""Messages to dataclasses and back. Byte fields are assigned as arrays, never as lists."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration
from xinfer_ros.engine.status import ServerStatus
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import (
    ActionChunk,
    CameraSpec,
    ExecutorState,
    ServerState,
)
from xinfer_ros.msg import CameraFrame as CameraFrameMsg
from xinfer_ros.msg import Observation as ObservationMsg
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.ros.observation_wire import Received, unstamped
from xinfer_ros.srv import RegisterRobot


def byte_array(data: Any) -> 'array[int]':
    """Return bytes in the one form that rclpy stores without touching each element."""
    return data if isinstance(data, array) else array('B', bytes(data))


def float_array(values: Any) -> 'array[float]':
    """Return numbers in the one form that rclpy stores without touching each element."""
    return array('f', np.ascontiguousarray(values, np.float32).tobytes())


def _matrix(values: Any, rows: int, columns: int, reason: Reason) -> Any:
    flat = np.asarray(values, np.float32)
    if flat.size != rows * columns:
        raise Rejected(
            reason,
            f'{flat.size} values for {rows} rows of {columns} joints; '
            'they are neither cut nor padded',
        )
    return flat.reshape(rows, columns)


def received(message: Any) -> Received:
    """Return an observation with what stands beside it; whoever asks can be answered."""
    stamp_ns = message.stamp.sec * 1_000_000_000 + message.stamp.nanosec
    try:
        observation, refusal = to_observation(message), unstamped(stamp_ns)
    except Rejected as misfit:
        observation, refusal = address(message), misfit
    return Received(observation=observation, stamp_ns=stamp_ns, refusal=refusal)


def address(message: Any) -> Observation:
    """Return who asks, without what is asked: enough to answer a message that can't be read."""
    return _observation(message, (), np.zeros((0, 0), np.float32))


def to_observation(message: Any) -> Observation:
    """
    Return an observation as a dataclass; pictures are not copied.

    :raises Rejected: REJECTED_LEFTOVER if the leftover's size does not fit its rows
    """
    names = tuple(message.joint_names)
    rows = message.leftover_steps
    leftover = _matrix(message.leftover, rows, len(names), Reason.REJECTED_LEFTOVER)
    return _observation(message, names, leftover)


def _observation(message: Any, names: tuple[str, ...], leftover: Any) -> Observation:
    return Observation(
        session=message.session,
        episode=message.episode,
        request_id=message.request_id,
        executed_steps=message.executed_steps,
        instruction=message.instruction,
        joint_names=names,
        state=np.array(message.state, np.float32),
        images=tuple(
            CameraFrame(
                name=frame.name,
                compressed=frame.compressed,
                encoding=frame.encoding,
                height=frame.height,
                width=frame.width,
                step=frame.step,
                is_bigendian=frame.is_bigendian,
                data=frame.data,
            )
            for frame in message.images
        ),
        budget_ns=message.budget_ns,
        minimum_period_ns=message.minimum_period_ns,
        commitment_steps=message.commitment_steps,
        keyframe_spacing_ns=message.keyframe_spacing_ns,
        leftover=leftover,
        ticks=message.ticks,
        starved_ticks=message.starved_ticks,
        answered_request_id=message.answered_request_id,
        round_trip_ns=message.round_trip_ns,
    )


def camera_frame(name: str, picture: Any, *, compressed: bool) -> Any:
    """Return a sensor_msgs/CompressedImage or Image as a camera frame."""
    frame = CameraFrameMsg()
    frame.name, frame.compressed = name, compressed
    if compressed:
        frame.encoding = picture.format
    else:
        frame.encoding, frame.is_bigendian = picture.encoding, bool(picture.is_bigendian)
        frame.height, frame.width, frame.step = picture.height, picture.width, picture.step
    frame.data = byte_array(picture.data)
    return frame


def from_draft(
    draft: RequestDraft, joint_names: Sequence[str], state: Any, frames: list[Any]
) -> Any:
    """Return an observation message; instruction, stamp and spacing are the node's to fill in."""
    message = ObservationMsg()
    message.session, message.episode = draft.session, draft.episode
    message.request_id, message.executed_steps = draft.request_id, draft.executed_steps
    message.joint_names = list(joint_names)
    message.state = float_array(state)
    message.images = frames
    message.budget_ns, message.commitment_steps = draft.budget_ns, draft.commitment_steps
    message.minimum_period_ns = draft.minimum_period_ns
    message.ticks, message.starved_ticks = draft.ticks, draft.starved_ticks
    message.answered_request_id = draft.answered_request_id
    message.round_trip_ns = draft.round_trip_ns
    message.leftover_steps = len(draft.leftover)
    message.leftover = float_array(draft.leftover)
    return message


def from_answer(answer: Answer) -> Any:
    """Return an answer as a message."""
    message = ActionChunk()
    message.session, message.episode = answer.session, answer.episode
    message.request_id, message.epoch = answer.request_id, answer.epoch
    message.reason, message.detail = int(answer.reason), answer.detail
    message.start_step, message.joint_names = answer.start_step, list(answer.joint_names)
    message.num_rows, message.rows = len(answer.rows), float_array(answer.rows)
    message.frozen_steps, message.degraded = answer.frozen_steps, answer.degraded
    message.keyframe_spacing_ns = answer.keyframe_spacing_ns
    for part in ServerTimes.__slots__:
        setattr(message, part, getattr(answer.times, part))
    message.ask_after_ns = answer.ask_after_ns
    return message


def to_answer(message: Any) -> Answer:
    """
    Return a message as an answer.

    :raises Rejected: REJECTED_COLUMNS if the rows do not fit their names, UNKNOWN_REASON if the
        reason is not one of ours
    """
    reason = Reason.of(message.reason)
    if reason is Reason.UNKNOWN_REASON:
        raise Rejected(
            reason, f'unknown reason {message.reason}; is the server of a newer version?'
        )
    names = tuple(message.joint_names)
    return Answer(
        session=message.session,
        episode=message.episode,
        request_id=message.request_id,
        epoch=message.epoch,
        reason=reason,
        detail=message.detail,
        start_step=message.start_step,
        joint_names=names,
        rows=_matrix(message.rows, message.num_rows, len(names), Reason.REJECTED_COLUMNS),
        frozen_steps=message.frozen_steps,
        degraded=message.degraded,
        keyframe_spacing_ns=message.keyframe_spacing_ns,
        times=ServerTimes(**{part: getattr(message, part) for part in ServerTimes.__slots__}),
        ask_after_ns=message.ask_after_ns,
    )


def to_registration(request: Any) -> Registration:
    """Return a registration request as a dataclass."""
    return Registration(
        robot_id=request.robot_id,
        namespace=request.robot_namespace,
        joint_names=tuple(request.joint_names),
        cameras=tuple(camera.name for camera in request.cameras),
        keyframe_spacing_ns=request.keyframe_spacing_ns,
        horizon=request.horizon,
        protocol_version=request.protocol_version,
        instance=request.instance,
    )


def from_registration(registration: Registration, encoding: str) -> Any:
    """Return a registration as a service request."""
    request = RegisterRobot.Request()
    request.robot_id, request.robot_namespace = registration.robot_id, registration.namespace
    request.joint_names = list(registration.joint_names)
    request.cameras = [CameraSpec(name=name, encoding=encoding) for name in registration.cameras]
    request.keyframe_spacing_ns = registration.keyframe_spacing_ns
    request.horizon, request.instance = registration.horizon, registration.instance
    request.protocol_version = PROTOCOL_VERSION
    return request


def fill_contract(response: Any, contract: ModelContract) -> None:
    """Write the contract in force into a registration response."""
    response.model, response.horizon = contract.name, contract.horizon
    response.joint_names = list(contract.joint_names)
    response.max_commitment_steps = contract.max_commitment_steps
    response.cameras = [
        CameraSpec(name=c.name, height=c.height, width=c.width, encoding='rgb8')
        for c in contract.cameras
    ]


def from_status(status: ServerStatus) -> Any:
    """Return the server's status as a message."""
    return ServerState(
        epoch=status.epoch,
        state=int(status.phase),
        model=status.model,
        num_robots=status.num_robots,
        max_robots=status.max_robots,
        engine_pid=status.engine_pid,
    )


_REPORT_FIELDS = (
    'robot_id', 'session', 'epoch', 'episode', 'executed_steps', 'queued_steps', 'ticks',
    'starved_ticks', 'requests', 'chunks', 'on_time', 'unanswered', 'misaddressed',
    'latency_p50_ns', 'latency_p99_ns', 'degraded_chunks', 'handoff_violations',
    'overfrozen_steps', 'commitment_steps', 'execution_mode', 'minimum_period_ns', 'budget_ns',
    'budget_reason', 'superseded', 'trigger_misses', 'overruns', 'skipped_steps', 'handoff_jump',
    'handoff_jump_max', 'motion', 'hold', 'brain', 'network_p50_ns', 'network_p99_ns',
)  # fmt: skip


def from_report(report: RobotReport) -> Any:
    """Return a robot's report as a message."""
    message = ExecutorState(**{name: getattr(report, name) for name in _REPORT_FIELDS})
    message.state = int(report.phase)
    message.reasons = [reason.name for reason in report.reasons]
    message.reason_counts = array('Q', report.reasons.values())
    return message


def to_report(message: Any) -> RobotReport:
    """Return a message as a robot's report."""
    report = RobotReport(**{name: getattr(message, name) for name in _REPORT_FIELDS})
    report.phase = ExecutorPhase(message.state)
    for name, count in zip(message.reasons, message.reason_counts, strict=True):
        report.reasons[Reason.__members__.get(name, Reason.UNKNOWN_REASON)] += count
    return report
