# SPDX-License-Identifier: Apache-2.0
"""When a skill of a robot is over, told from the reports of its executor."""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

from xinfer_ros.core.metrics import RobotReport

STILL_NS = 1_500_000_000  # time without motion that counts as standing still
STILL_MOTION = 0.005  # path of the joint that moves most, in a second, that is none [rad; m]
SILENT_NS = 2_000_000_000  # an executor reports twice a second


class SkillEnd(IntEnum):
    """How a skill ends; the constants of action/RunSkill.action."""

    DONE = 0
    TIMEOUT = 1
    CANCELLED = 2
    REPLACED = 3
    SILENT = 4
    SHUTDOWN = 5

    @property
    def words(self) -> str:
        """Return what it means."""
        return _WORDS[self]


_WORDS = {
    SkillEnd.DONE: 'the steps were executed, or the robot has stopped moving',
    SkillEnd.TIMEOUT: 'its time is over',
    SkillEnd.CANCELLED: 'cancelled',
    SkillEnd.REPLACED: 'the robot has another task now',
    SkillEnd.SILENT: f'the executor has not been heard for {SILENT_NS / 1e9:g} s',
    SkillEnd.SHUTDOWN: 'the brain node ends',
}


class RobotTask:
    """The task of a robot, for one who gives it tasks and hears whatever others give it."""

    def __init__(self) -> None:
        self.name = ''
        self._echoes: deque[str] = deque()

    def given(self, task: str) -> None:
        """Note that we give a task; it will be heard too."""
        self.name = task
        self._echoes.append(task)

    def heard(self, task: str) -> bool:
        """Return whether a task that is heard takes over; ours come in order, late, or never."""
        if task in self._echoes:
            while self._echoes.popleft() != task:
                pass
            return False
        takes_over = task != self.name
        self.name = task
        return takes_over


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillWish:
    """
    What a skill is to be.

    :param task: instruction
    :param until_still: whether it ends when the robot has stopped moving after it had moved
    :param timeout_ns: the longest time [ns]
    :param max_steps: rows to execute, None: any number [steps]
    """

    task: str
    until_still: bool
    timeout_ns: int
    max_steps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillProgress:
    """How far a skill is; counted from its first report on, over starts of the executor."""

    steps: int
    starved_ticks: int
    elapsed_ns: int


class Skill:
    """
    Judges one skill; values in, verdicts out.

    :param wish: what is wanted
    :param began_ns: steady clock [ns]
    """

    def __init__(self, wish: SkillWish, began_ns: int) -> None:
        self._wish, self._began_ns = wish, began_ns
        self._latest: RobotReport | None = None
        self._steps = self._starved_ticks = 0
        self._heard_ns = began_ns
        self._has_moved = False
        self._still_since_ns: int | None = None

    def reported(self, report: RobotReport, now_ns: int) -> None:
        """Take in a report of the executor."""
        before, self._latest, self._heard_ns = self._latest, report, now_ns
        if before is None or report.executed_steps < before.executed_steps:
            self._still_since_ns = None
            return  # the first one, or it has started anew
        steps = report.executed_steps - before.executed_steps
        self._steps += steps
        self._starved_ticks += max(report.starved_ticks - before.starved_ticks, 0)
        self._moved(report.motion, now_ns, runs=steps > 0)

    def _moved(self, motion: float, now_ns: int, *, runs: bool) -> None:
        """
        Note whether the robot stands still.

        :param runs: whether rows run; one that is made to hold stands still for another reason
        """
        if not runs:
            self._still_since_ns = None
        elif motion >= STILL_MOTION:
            self._has_moved, self._still_since_ns = True, None
        elif self._still_since_ns is None:
            self._still_since_ns = now_ns

    def progress(self, now_ns: int) -> SkillProgress:
        """Return how far it is."""
        return SkillProgress(
            steps=self._steps,
            starved_ticks=self._starved_ticks,
            elapsed_ns=now_ns - self._began_ns,
        )

    def judge(self, task: str, now_ns: int) -> SkillEnd | None:
        """
        Return how it has ended, None while it goes on.

        :param task: that the robot has at present
        """
        wish = self._wish
        if task != wish.task:
            return SkillEnd.REPLACED
        if wish.max_steps is not None and self.progress(now_ns).steps >= wish.max_steps:
            return SkillEnd.DONE
        still_since_ns = self._still_since_ns
        is_still = still_since_ns is not None and now_ns - still_since_ns >= STILL_NS
        if wish.until_still and self._has_moved and is_still:
            return SkillEnd.DONE
        if now_ns - self._began_ns >= wish.timeout_ns:
            return SkillEnd.TIMEOUT
        return SkillEnd.SILENT if now_ns - self._heard_ns >= SILENT_NS else None
