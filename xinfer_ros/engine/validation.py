# SPDX-License-Identifier: Apache-2.0
"""What the server checks of an observation before it costs anything."""

import numpy as np

from xinfer_ros.core.chunk import check_rows
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.core.request import check_budget
from xinfer_ros.engine.robots import Robot
from xinfer_ros.errors import Reason, Rejected

MIN_PERIOD_NS, MAX_PERIOD_NS = 1_000_000, 60_000_000_000


def check_observation(observation: Observation, robot: Robot, contract: ModelContract) -> None:
    """
    Refuse an observation that does not keep to the contract; pictures are checked when decoded.

    :raises Rejected: says what was received and what is expected
    """
    registered = robot.registration
    if observation.request_id <= robot.last_request_id:
        raise Rejected(
            Reason.REJECTED_ORDER,
            f'request {observation.request_id} after {robot.last_request_id}: ids must rise',
        )
    if observation.joint_names != registered.joint_names:
        raise Rejected(
            Reason.REJECTED_STATE,
            'joint names differ from the registration: '
            f'expected {", ".join(registered.joint_names)}; '
            f'received {", ".join(observation.joint_names) or "none"}',
        )
    num_joints = len(registered.joint_names)
    if observation.state.shape != (num_joints,) or not np.isfinite(observation.state).all():
        raise Rejected(
            Reason.REJECTED_STATE,
            f'the state needs {num_joints} finite values, got {observation.state.tolist()}'[:300],
        )
    check_budget(observation.budget_ns)
    if not MIN_PERIOD_NS <= observation.minimum_period_ns <= MAX_PERIOD_NS:
        raise Rejected(
            Reason.REJECTED_PERIOD,
            f'a minimum period of {observation.minimum_period_ns} ns; 1 ms to 60 s are allowed',
        )
    if observation.keyframe_spacing_ns != registered.keyframe_spacing_ns:
        raise Rejected(
            Reason.REJECTED_SPACING,
            f'keyframe spacing of {observation.keyframe_spacing_ns} ns, registered were '
            f'{registered.keyframe_spacing_ns} ns',
        )
    _check_leftover(observation, num_joints, contract)
    instruction_bytes = len(observation.instruction.encode())
    if instruction_bytes > contract.max_instruction_bytes:
        raise Rejected(
            Reason.REJECTED_INSTRUCTION,
            f'the instruction has {instruction_bytes} bytes, {contract.max_instruction_bytes} are '
            'allowed; it is never cut',
        )
    names = {frame.name for frame in observation.images}
    missing = [camera.name for camera in contract.cameras if camera.name not in names]
    if missing:
        raise Rejected(Reason.REJECTED_IMAGE, f'no picture of {", ".join(missing)}')


def _check_leftover(observation: Observation, num_joints: int, contract: ModelContract) -> None:
    leftover = observation.leftover
    if len(leftover):
        try:
            check_rows(leftover, num_joints)
        except Rejected as refusal:
            raise Rejected(Reason.REJECTED_LEFTOVER, refusal.detail) from None
    if len(leftover) > contract.horizon:
        raise Rejected(
            Reason.REJECTED_LEFTOVER,
            f'{len(leftover)} rows of leftover, a chunk has {contract.horizon}',
        )
    if not 0 <= observation.commitment_steps <= len(leftover):
        raise Rejected(
            Reason.REJECTED_COMMITMENT,
            f'{observation.commitment_steps} rows are to be frozen, '
            f'the leftover has {len(leftover)}',
        )
