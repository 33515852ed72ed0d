# SPDX-License-Identifier: Apache-2.0
"""Answers to observations: with rows, or with the reason why there are none."""

import numpy as np

from xinfer_ros.core.chunk import Answer, Commitment, Rows, ServerTimes
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.robots import Robot
from xinfer_ros.errors import Reason


def with_rows(
    robot: Robot,
    observation: Observation,
    life: EngineLife,
    rows: Rows,
    times: ServerTimes,
    ask_after_ns: int,
) -> Answer:
    """
    Return a chunk for a robot.

    :param rows: ``(H, action_dim)`` float32 in the contract's joint order
    :param ask_after_ns: pace, see ``Answer`` [ns]
    """
    commitment = Commitment.of(
        observation.commitment_steps,
        len(observation.leftover),
        life.contract.max_commitment_steps,
    )
    return Answer(
        session=observation.session,
        episode=observation.episode,
        request_id=observation.request_id,
        epoch=life.epoch,
        reason=Reason.OK,
        start_step=observation.executed_steps,
        joint_names=robot.registration.joint_names,
        rows=np.ascontiguousarray(rows[:, robot.to_robot]),
        frozen_steps=commitment.frozen_steps,
        degraded=commitment.degraded,
        keyframe_spacing_ns=observation.keyframe_spacing_ns,
        times=times,
        ask_after_ns=min(ask_after_ns, observation.budget_ns),
    )


def without_rows(
    observation: Observation, epoch: int, reason: Reason, detail: str, server_ns: int
) -> Answer:
    """Return the reason why a robot gets no chunk."""
    return Answer(
        session=observation.session,
        episode=observation.episode,
        request_id=observation.request_id,
        epoch=epoch,
        reason=reason,
        detail=detail,
        start_step=observation.executed_steps,
        times=ServerTimes(server_ns=server_ns),
    )
