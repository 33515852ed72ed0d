# SPDX-License-Identifier: Apache-2.0
"""The requests on their way through the server, each answered exactly once."""

import itertools
import threading
from dataclasses import dataclass, replace

from xinfer_ros.core.observation import Observation
from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.records import Announce
from xinfer_ros.engine.robots import Robot


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """
    A request on its way.

    :param key: unique in the life of this server, rising with arrival
    :param life: the engine that computes it
    :param slot: its slot there
    :param arrival_ns: server's monotonic clock [ns]
    :param decode_ns: time until its inputs lay in the slot [ns]
    :param submitted: whether the engine has it
    :param answered: whether the robot has its answer
    """

    key: int
    robot: Robot
    observation: Observation
    life: EngineLife
    slot: int
    arrival_ns: int
    decode_ns: int = 0
    submitted: bool = False
    answered: bool = False

    def announcement(self) -> Announce:
        """Return what the scheduler is told on arrival."""
        observation, contract = self.observation, self.life.contract
        return Announce(
            robot=self.robot.number,
            arrival_ns=self.arrival_ns,
            budget_ns=observation.budget_ns,
            period_ns=observation.minimum_period_ns,
            sight=QueueSight(
                executed_steps=observation.executed_steps,
                leftover_steps=len(observation.leftover),
                horizon_steps=self.robot.registration.horizon or contract.horizon,
                spacing_ns=observation.keyframe_spacing_ns,
            ),
        )

    def request(self, reserved_ns: int) -> Request:
        """
        Return the request as the scheduler sees it.

        :param reserved_ns: part of its budget kept for what happens outside the server [ns]
        """
        return Request(
            key=self.key,
            robot=self.robot.number,
            slot=self.slot,
            arrival_ns=self.arrival_ns,
            budget_ns=self.observation.budget_ns,
            reserved_ns=reserved_ns,
            period_ns=self.observation.minimum_period_ns,
        )


class PendingRequests:
    """Who waits for what; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[int, Pending] = {}
        self._latest: dict[Robot, Pending] = {}
        self._keys = itertools.count(1)

    def admit(
        self, robot: Robot, observation: Observation, life: EngineLife, arrival_ns: int
    ) -> tuple[Pending, Pending | None]:
        """
        Reserve a slot for a request.

        :returns: the request, and the robot's earlier one that it supersedes
        :raises Rejected: REJECTED_NO_SLOT
        """
        with self._lock:
            pending = Pending(
                key=next(self._keys),
                robot=robot,
                observation=observation,
                life=life,
                slot=life.take_slot(),
                arrival_ns=arrival_ns,
            )
            superseded = self._latest.get(robot)
            self._by_key[pending.key] = self._latest[robot] = pending
            return pending, superseded

    def get(self, key: int) -> Pending | None:
        """Return the request of a key, None if it is over."""
        with self._lock:
            return self._by_key.get(key)

    def latest(self, robot: Robot) -> Pending | None:
        """Return the request that a robot waits for."""
        with self._lock:
            return self._latest.get(robot)

    def set_budget(self, robot: Robot, budget_ns: int) -> Pending | None:
        """Change the budget of a robot's request; return the request if the engine has it."""
        with self._lock:
            pending = self._latest.get(robot)
            if pending is None:
                return None
            pending.observation = replace(pending.observation, budget_ns=budget_ns)
            return pending if pending.submitted else None

    def mark_submitted(self, pending: Pending) -> bool:
        """Note that the engine gets a request; False if it was answered in the meantime."""
        with self._lock:
            pending.submitted = not pending.answered
            return pending.submitted

    def claim_answer(self, pending: Pending) -> bool:
        """Return True to the one caller that may answer a request."""
        with self._lock:
            if pending.answered:
                return False
            pending.answered = True
            if self._latest.get(pending.robot) is pending:
                del self._latest[pending.robot]
            return True

    def release(self, pending: Pending) -> None:
        """Give back the slot of a request that neither decoder nor engine uses any more."""
        with self._lock:
            if self._by_key.pop(pending.key, None) is not None:
                pending.life.free_slot(pending.slot)

    def all(self) -> list[Pending]:
        """Return every request."""
        with self._lock:
            return list(self._by_key.values())

    def drain(self) -> list[Pending]:
        """Forget and return every request; their slots are gone with their engine."""
        with self._lock:
            waiting = list(self._by_key.values())
            self._by_key.clear()
            return waiting
