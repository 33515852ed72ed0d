# SPDX-License-Identifier: Apache-2.0
"""A server in the test's own process: everything between an observation and its answer is real."""

from typing import Any

import numpy as np

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.engine.answers import with_rows
from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.records import Record
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot, RobotRegister
from xinfer_ros.engine.slot_writer import write_slot
from xinfer_ros.engine.validation import check_observation
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.session import Grant

EPOCH = 3


class NoEngine:
    """The connection of a life without an engine process."""

    pid = 0

    def send(self, record: Record) -> None:
        """Lose a record."""


class InProcessServer:
    """
    Registers, validates, writes the slot, runs every stage and answers, all at once.

    :param model: warm or not
    """

    def __init__(self, model: StagedModel, num_slots: int = 2) -> None:
        self.model, self._num_slots = model, num_slots
        memory = memoryview(bytearray(slot_memory_bytes(model.contract, num_slots)))
        self.slots: SlotArrays = slot_arrays(model.contract, num_slots, memory)
        model.bind(self.slots, LanePlan(num_states=num_slots))
        self.life = EngineLife(EPOCH, NoEngine(), model.contract, self.slots)
        self._register = RobotRegister(max_robots=4, lease_ns=10**10)

    def register(self, **changes: Any) -> Robot:
        """
        Register a robot with the contract's joints and cameras.

        :raises Rejected: as a server refuses
        """
        contract = self.model.contract
        fields: dict[str, Any] = {
            'robot_id': 'r0',
            'namespace': '/r0',
            'joint_names': contract.joint_names,
            'cameras': tuple(camera.name for camera in contract.cameras),
            'keyframe_spacing_ns': 33_300_000,
            'horizon': 0,
            'protocol_version': PROTOCOL_VERSION,
            'instance': 1,
        }
        registration = Registration(**(fields | changes))
        return self._register.register(registration, contract, 0)[0]

    def grant(self, robot: Robot) -> Grant:
        """Return what the robot gets for it."""
        return Grant(
            session=robot.session,
            epoch=EPOCH,
            lease_ns=self._register.lease_ns,
            max_commitment_steps=self.model.contract.max_commitment_steps,
        )

    def answer(self, robot: Robot, observation: Observation, slot: int = 0) -> Answer:
        """
        Return the answer to an observation.

        :raises Rejected: as a server refuses
        """
        check_observation(observation, robot, self.model.contract)
        robot.last_request_id = observation.request_id
        write_slot(self.life, slot, robot, observation)
        for stage in self.model.contract.stages:
            refused = self.model.run(stage, Batch(slot_ids=(slot,), state_ids=(slot,)))
            assert refused == {}
        rows = self.slots.actions[slot].copy()
        return with_rows(robot, observation, self.life, rows, ServerTimes(), 0)


def observation_of(
    draft: RequestDraft, robot: Robot, server: InProcessServer, **changes: Any
) -> Observation:
    """Return the observation of a draft with grey pictures; the state is 0 unless told."""
    contract = server.model.contract
    fields: dict[str, Any] = {
        'session': draft.session,
        'episode': draft.episode,
        'request_id': draft.request_id,
        'executed_steps': draft.executed_steps,
        'instruction': 'pick',
        'joint_names': robot.registration.joint_names,
        'state': np.zeros(contract.action_dim, np.float32),
        'images': tuple(
            CameraFrame(
                name=camera.name,
                compressed=False,
                encoding='rgb8',
                height=camera.height,
                width=camera.width,
                step=3 * camera.width,
                is_bigendian=False,
                data=bytes(3 * camera.width * camera.height),
            )
            for camera in contract.cameras
        ),
        'budget_ns': draft.budget_ns,
        'minimum_period_ns': draft.minimum_period_ns,
        'commitment_steps': draft.commitment_steps,
        'keyframe_spacing_ns': robot.registration.keyframe_spacing_ns,
        'leftover': draft.leftover,
    }
    return Observation(**(fields | changes))
