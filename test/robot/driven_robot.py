# SPDX-License-Identifier: Apache-2.0
"""A chunk executor on a simulated clock; ticks, requests and answers come from the test."""

from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer, Rows
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.errors import Reason
from xinfer_ros.robot.action_queue import QueuedRow
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.session import Grant

MS = 1_000_000
TICK_NS = 33_300_000
GRANT = Grant(session=77, epoch=5, lease_ns=5000 * MS)


def numbered_rows(first_step: int, num_rows: int, num_joints: int = 2, chunk: int = 0) -> Rows:
    """Return rows that tell what they are: column 0 is the step, the others the chunk."""
    rows = np.full((num_rows, num_joints), chunk, np.float32)
    rows[:, 0] = np.arange(first_step, first_step + num_rows)
    return rows


class DrivenRobot:
    """
    A registered robot whose network is the test.

    :param joint_names: the robot's joints in its own order
    :param changes: settings of the executor other than here
    """

    def __init__(self, joint_names: tuple[str, ...] = ('a', 'b'), **changes: Any) -> None:
        self.settings = ExecutorSettings(
            **{
                'robot_id': 'r0',
                'joint_names': joint_names,
                'keyframe_spacing_ns': TICK_NS,
                'minimum_period_ns': 180 * MS,
                'backoff_ns': 100 * MS,
                'commitment_steps': 6,
                'budget_ns': 180 * MS,
                **changes,
            }
        )
        self.clock = SimulatedClock(1000 * MS)
        self.executor = ChunkExecutor(self.settings)
        self.executor.granted(GRANT, self.clock.now_ns())

    def ask(self) -> RequestDraft | None:
        """Send a request if one is due, as the executor node does."""
        if not self.executor.request_is_due(self.clock.now_ns()):
            return None
        return self.executor.begin_request(self.clock.now_ns())

    def ask_when_due(self) -> RequestDraft:
        """Let time pass, a millisecond at once, until a request leaves."""
        for _ in range(100_000):
            if (draft := self.ask()) is not None:
                return draft
            self.clock.advance(MS)
        raise AssertionError('no request left within 100 s')

    def answer(self, draft: RequestDraft, rows: Rows | None = None, **changes: Any) -> Reason:
        """Let an answer arrive now; 50 numbered rows unless told otherwise."""
        if rows is None:
            rows = numbered_rows(
                draft.executed_steps, 50, len(self.settings.joint_names), draft.request_id
            )
        answer = Answer(
            **{
                'session': draft.session,
                'episode': draft.episode,
                'request_id': draft.request_id,
                'epoch': GRANT.epoch,
                'reason': Reason.OK,
                'start_step': draft.executed_steps,
                'joint_names': self.settings.joint_names,
                'rows': rows,
                'keyframe_spacing_ns': TICK_NS,
                **changes,
            }
        )
        return self.executor.accept(answer, self.clock.now_ns())

    def tick(self, num_ticks: int) -> list[QueuedRow | None]:
        """Run control ticks; time goes on with them."""
        taken = []
        for _ in range(num_ticks):
            taken.append(self.executor.tick())
            self.clock.advance(TICK_NS)
        return taken

    def steps(self, num_ticks: int) -> list[float]:
        """Run control ticks; return the step that each executed row says it is for."""
        return [float(row.values[0]) for row in self.tick(num_ticks) if row is not None]


def moving_robot(queued: int = 50, **changes: Any) -> DrivenRobot:
    """Return a robot that has just received its first chunk."""
    robot = DrivenRobot(**changes)
    assert robot.answer(robot.ask_when_due(), numbered_rows(0, queued)) is Reason.OK
    return robot
