# SPDX-License-Identifier: Apache-2.0
"""What the server checks of an observation before it costs anything."""

import numpy as np

from xinfer_ros.core.chunk import Rows, all_finite
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
    _check_floats(observation.state, (num_joints,), 'state', Reason.REJECTED_STATE)
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
    names = [frame.name for frame in observation.images]
    missing = [camera.name for camera in contract.cameras if camera.name not in names]
    if missing:
        raise Rejected(
            Reason.MISSING_CAMERA,
            f'no picture of {", ".join(missing)}: '
            f'expected {", ".join(camera.name for camera in contract.cameras)}; '
            f'received {", ".join(names) or "none"}',
        )


def _check_floats(values: Rows, shape: tuple[int, ...], name: str, reason: Reason) -> None:
    """Refuse numbers of another type or shape than expected, or that are not finite."""
    if values.dtype != np.float32 or values.shape != shape:
        raise Rejected(
            reason,
            f'{name}: expected float32 of shape {shape}; '
            f'received {values.dtype} of shape {values.shape}',
        )
    if not all_finite(values):
        wrong = tuple(int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise Rejected(
            reason, f'{name}: expected finite values; received {values[wrong]} at {wrong}'
        )


def _check_leftover(observation: Observation, num_joints: int, contract: ModelContract) -> None:
    """
    Refuse a leftover that does not fit, or a promise of more rows than there are.

    Without a leftover nothing was promised yet, as at the first request, whatever the commitment.
    A leftover without a commitment is no fault: the new chunk is not tied to it.
    """
    leftover = observation.leftover
    if not len(leftover):
        return
    if len(leftover) > contract.horizon:
        raise Rejected(
            Reason.REJECTED_LEFTOVER,
            f'leftover: expected at most {contract.horizon} rows, those of a chunk; '
            f'received {len(leftover)}',
        )
    shape = (len(leftover), num_joints)
    _check_floats(leftover, shape, 'leftover', Reason.REJECTED_LEFTOVER)
    if not 0 <= observation.commitment_steps <= len(leftover):
        raise Rejected(
            Reason.REJECTED_COMMITMENT,
            f'{observation.commitment_steps} rows are promised to the robot, '
            f'but its leftover has {len(leftover)}',
        )
