# SPDX-License-Identifier: Apache-2.0
"""What a websocket robot is sent: metadata at first, then a dictionary for every observation."""

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Robot
from xinfer_ros.errors import Reason
from xinfer_ros.openpi.wishes import KEY

# what time mends: the next observation may be served, so the connection stays
_PASSING = frozenset(
    {
        Reason.NOT_READY, Reason.ENGINE_RESTARTED, Reason.EXPIRED, Reason.SUPERSEDED,
        Reason.UNKNOWN_SESSION, Reason.MODEL_FAILED, Reason.HUNG, Reason.OUT_OF_MEMORY,
        Reason.DEVICE_FAILED, Reason.DUPLICATE_ID, Reason.REJECTED_FLEET_FULL,
        Reason.REJECTED_NO_SLOT, Reason.REJECTED_CAPACITY, Reason.REJECTED_ROWS,
    }
)  # fmt: skip


def is_passing(reason: Reason) -> bool:
    """Return whether the robot may ask again over the same connection."""
    return reason in _PASSING


def metadata(
    contract: ModelContract, robot: Robot | None, epoch: int, keys: dict[str, list[str]]
) -> dict[str, object]:
    """
    Return what a robot is told when it connects.

    :param robot: None if it could not be registered; its first request will say why
    :param keys: under which keys the server looks for each thing
    """
    return {
        'model': contract.name,
        'action_horizon': contract.horizon,
        'action_dim': contract.action_dim,
        'joint_names': list(contract.joint_names),
        'cameras': [
            {'name': each.name, 'height': each.height, 'width': each.width}
            for each in contract.cameras
        ],
        'keys': keys,
        KEY: {
            'protocol': PROTOCOL_VERSION,
            'epoch': epoch,
            'robot_id': robot.registration.robot_id if robot else '',
            'session': robot.session if robot else 0,
            'max_commitment_steps': contract.max_commitment_steps,
        },
    }


def chunk(answer: Answer, previous_total_ns: int | None) -> dict[str, object]:
    """
    Return an answer with rows.

    :param previous_total_ns: from the arrival of the previous observation until its answer was
        sent, None if this is the first [ns]
    """
    return {
        'actions': answer.rows,
        'server_timing': _timing(answer.times, previous_total_ns),
        KEY: {
            'request_id': answer.request_id,
            'episode': answer.episode,
            'session': answer.session,
            'epoch': answer.epoch,
            'start_step': answer.start_step,
            'joint_names': list(answer.joint_names),
            'frozen_steps': answer.frozen_steps,
            'degraded': answer.degraded,
            'spacing_s': answer.keyframe_spacing_ns / 1e9,
            'ask_after_s': answer.ask_after_ns / 1e9,
        },
    }


def _timing(times: ServerTimes, previous_total_ns: int | None) -> dict[str, float]:
    """Return the parts in ms; infer_ms is all that a model's call would have taken."""
    parts = {f'{name[:-3]}_ms': getattr(times, name) / 1e6 for name in ServerTimes.__slots__}
    infer_ns = times.queue_ns + times.vit_ns + times.prefill_ns + times.action_ns
    timing = {'infer_ms': infer_ns / 1e6, **parts}
    if previous_total_ns is not None:
        timing['prev_total_ms'] = previous_total_ns / 1e6
    return timing
