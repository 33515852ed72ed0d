# SPDX-License-Identifier: Apache-2.0
"""Writes an observation into its slot: pictures decoded, joints in the model's order."""

import logging

import numpy as np

from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.pending import Pending
from xinfer_ros.engine.robots import Robot
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.images import ImageError, decode_compressed, decode_raw

log = logging.getLogger(__name__)


def why_not_filled(pending: Pending) -> Rejected | None:
    """Write the inputs of a request into its slot; return why they can't be, None if they are."""
    try:
        write_slot(pending.life, pending.slot, pending.robot, pending.observation)
    except Rejected as refusal:
        return refusal
    except Exception:
        log.exception('request %d could not be prepared', pending.key)
        return Rejected(Reason.REJECTED_IMAGE, 'the pictures could not be prepared')
    return None


def write_slot(life: EngineLife, slot: int, robot: Robot, observation: Observation) -> None:
    """
    Write every input of a request into its slot.

    :param life: the engine whose slot it is
    :param slot: reserved for this request
    :param robot: who asks
    :param observation: checked by ``check_observation`` already
    :raises Rejected: REJECTED_IMAGE, naming the camera and what is allowed
    """
    slots, contract = life.slots, life.contract
    frames = {frame.name: frame for frame in observation.images}
    for index, camera in enumerate(contract.cameras):
        frame, target = frames[camera.name], slots.images[index][slot]
        try:
            if frame.compressed:
                decode_compressed(frame.data, frame.encoding, target, camera.anchor)
            else:
                decode_raw(
                    frame.data,
                    frame.encoding,
                    frame.height,
                    frame.width,
                    frame.step,
                    frame.is_bigendian,
                    target,
                    camera.anchor,
                )
        except ImageError as error:
            detail = f'camera {camera.name}: {error.detail}'
            raise Rejected(Reason.REJECTED_IMAGE, detail) from error
        slots.camera_present[slot, index] = True
    slots.state[slot] = observation.state[robot.to_model]
    text = observation.instruction.encode()
    slots.instruction[slot, : len(text)] = np.frombuffer(text, np.uint8)
    slots.instruction[slot, len(text) :] = 0
    slots.instruction_bytes[slot] = len(text)
    rows = len(observation.leftover)
    slots.leftover[slot] = 0.0  # nothing of the slot's last request is left
    if rows:
        leftover = observation.leftover[:, robot.to_model]
        slots.leftover[slot, :rows] = leftover
        slots.leftover[slot, rows:] = leftover[-1]
    slots.leftover_steps[slot] = rows
    slots.commitment_steps[slot] = min(observation.commitment_steps, rows)
    # the same observation always gives the same chunk; no two requests share their noise
    slots.seed[slot] = (observation.request_id * 2654435761 + robot.session) % 2**64
