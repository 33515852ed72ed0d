# SPDX-License-Identifier: Apache-2.0
"""A server behind a network that loses, doubles, reorders and delays; seeded, on a given clock."""

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer, Commitment, Rows
from xinfer_ros.errors import Reason
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.session import Grant

from .driven_robot import MS, TICK_NS

HORIZON = 50
MAX_COMMITMENT = 20
JOINTS = ('step', 'request', 'task', 'arm')  # three that tell what a row is, and one that moves
ARM = 3
STEP_LIMIT = 0.5  # of the arm
_LOSS, _DOUBLE, _REFUSED, _BROKEN = 0.15, 0.1, 0.05, 0.05


@dataclass(order=True, slots=True)
class Delivery:
    """Something on its way to the robot: an answer, or a grant."""

    at_ns: int
    number: int
    what: Answer | Grant = field(compare=False)


class RoughNetwork:
    """
    Answers drafts as a server does whose network is bad at times.

    :param seed: of everything that happens
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.is_calm = False
        self._epoch, self._session = 1, 1000
        self._under_way: list[Delivery] = []
        self._numbers = 0
        self.foreign = 0

    def restart_server(self) -> int:
        """Give the server another epoch, and every robot another session; return the epoch."""
        self._epoch += 1
        self._session += 1
        return self._epoch

    def register(self, now_ns: int) -> None:
        """Take in a registration."""
        if self.is_calm or self.random.random() > _LOSS:
            grant = Grant(
                session=self._session, epoch=self._epoch, lease_ns=5000 * MS,
                max_commitment_steps=MAX_COMMITMENT,
            )  # fmt: skip
            self._send(grant, now_ns)

    def ask(self, draft: RequestDraft, arm: float, task: int, now_ns: int) -> None:
        """Take in an observation; its answers are on their way at once."""
        if not self.is_calm and self.random.random() < _LOSS:
            return
        answer = self._answer(draft, arm, task)
        for _ in range(1 + (not self.is_calm and self.random.random() < _DOUBLE)):
            self._send(answer, now_ns)
        if not self.is_calm and self.random.random() < 0.01:
            self.foreign += 1
            self._send(replace(answer, session=1, reason=Reason.OK), now_ns)

    def due(self, now_ns: int) -> list[Delivery]:
        """Return what has arrived by now, in the order of arrival."""
        arrived = []
        while self._under_way and self._under_way[0].at_ns <= now_ns:
            arrived.append(heapq.heappop(self._under_way))
        return arrived

    def _send(self, what: Answer | Grant, now_ns: int) -> None:
        self._numbers += 1
        longest_ms = 3000 if not self.is_calm and self.random.random() < 0.1 else 150
        at_ns = now_ns + int(self.random.integers(20 * MS, longest_ms * MS))
        heapq.heappush(self._under_way, Delivery(at_ns, self._numbers, what))

    def _answer(self, draft: RequestDraft, arm: float, task: int) -> Answer:
        kept = Commitment.of(draft.commitment_steps, len(draft.leftover), MAX_COMMITMENT)
        fields: dict[str, Any] = {
            'session': draft.session,
            'episode': draft.episode,
            'request_id': draft.request_id,
            'epoch': self._epoch,
            'reason': Reason.OK,
            'start_step': draft.executed_steps,
            'joint_names': JOINTS,
            'rows': self._rows(draft, arm, task, kept.frozen_steps),
            'frozen_steps': kept.frozen_steps,
            'degraded': kept.degraded,
            'keyframe_spacing_ns': TICK_NS,
            'ask_after_ns': int(self.random.integers(0, 300)) * MS,
        }
        if draft.session != self._session:
            fields['reason'] = Reason.UNKNOWN_SESSION
        elif not self.is_calm:
            fields |= self._spoilt(fields)
        return Answer(**fields)

    def _spoilt(self, fields: dict[str, Any]) -> dict[str, Any]:
        if self.random.random() < _REFUSED:
            return {'reason': Reason.EXPIRED}
        if self.random.random() >= _BROKEN:
            return {}
        rows = fields['rows'].copy()
        place = int(self.random.integers(len(rows)))
        kind = int(self.random.integers(4))
        if kind == 0:
            rows[place, ARM] = self.random.choice([np.nan, np.inf, -np.inf])
        elif kind == 1:
            rows[place:, ARM] += 10 * STEP_LIMIT
        elif kind == 2:
            return {'start_step': fields['start_step'] + int(self.random.integers(-9, 9))}
        return {'rows': rows[: 0 if kind == 3 else len(rows)]}

    def _rows(self, draft: RequestDraft, arm: float, task: int, frozen_steps: int) -> Rows:
        """Return a chunk that goes on from its frozen rows, or from where the arm was."""
        rows = np.zeros((HORIZON, len(JOINTS)), np.float32)
        rows[:, 0] = draft.executed_steps + np.arange(HORIZON)
        rows[:, 1:ARM] = draft.request_id, task
        steps = self.random.uniform(-0.35 * STEP_LIMIT, 0.35 * STEP_LIMIT, HORIZON)
        frozen = draft.leftover[:frozen_steps, ARM]
        rows[:, ARM] = (frozen[-1] if len(frozen) else arm) + np.cumsum(steps) - 0.01 * arm
        rows[: len(frozen), ARM] = frozen
        return rows
