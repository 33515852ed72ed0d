# SPDX-License-Identifier: Apache-2.0
"""One robot in virtual time: its real executor, a body that obeys it, a source of chunks."""

import heapq
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Answer, Commitment, Rows
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.errors import Reason
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.sensed import Sensed
from xinfer_ros.robot.session import Grant

View = TypeVar('View')
Seen = TypeVar('Seen', covariant=True)
Shown = TypeVar('Shown', contravariant=True)

FOREVER = 2**62
GRANT = Grant(session=1, epoch=1, lease_ns=FOREVER)


class Plant(Protocol[Seen]):
    """A body whose time passes tick by tick."""

    def state(self) -> Rows:
        """Return the measured joints ``(num_joints,)``."""
        ...

    def view(self) -> Seen:
        """Return what a model is shown now; later changes must not reach it."""
        ...

    def apply(self, command: Rows) -> None:
        """Obey a row ``(num_joints,)`` for one keyframe spacing."""
        ...

    def is_done(self) -> bool:
        """Return whether there is nothing left to do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """
    What a request says of the running chunk.

    :param leftover: ``(n, num_joints)``, row 0 is played next; empty if nothing was told
    :param frozen_steps: its first rows that the new chunk must repeat [steps]
    :param executed_steps: rows played so far [steps]
    """

    leftover: Rows
    frozen_steps: int
    executed_steps: int


class ChunkSource(Protocol[Shown]):
    """What a server with its model makes of an observation."""

    def chunk(self, view: Shown, tie: Tie) -> Rows:
        """Return rows ``(H, num_joints)``; those frozen equal the leftover exactly."""
        ...


class ResponseDelay:
    """
    Time from an observation to its chunk, drawn evenly around a mean.

    :param mean_ns: [ns]
    :param spread: largest deviation as a share of the mean, 0 for a fixed delay
    :param seed: of the draws
    """

    def __init__(self, mean_ns: int, spread: float, seed: int) -> None:
        self._mean_ns, self._spread = mean_ns, spread
        self._random = np.random.default_rng(seed)

    def draw_ns(self) -> int:
        """Return the delay of the next answer [ns]."""
        return round(self._mean_ns * (1.0 + self._spread * self._random.uniform(-1.0, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoopRun:
    """
    What has come of a run.

    :param done: whether the plant was done, or every row played, before the time was over
    :param ticks: control ticks until then
    :param commands: what the plant obeyed at each tick ``(ticks, num_joints)``, holds included
    :param steps: rows played after each tick ``(ticks,)``; where it does not rise is a hold
    :param jumps: largest joint step at each seam, as the executor reports it
    """

    done: bool
    ticks: int
    commands: Rows
    steps: npt.NDArray[np.int64]
    jumps: npt.NDArray[np.float64]
    report: RobotReport


@dataclass(order=True, slots=True, kw_only=True)
class _Due:
    """An answer on its way."""

    at_ns: int
    request_id: int
    answer: Answer = field(compare=False)


class ClosedLoop(Generic[View]):
    """
    Drives an executor as its node does: at each tick a row is taken, then a request may leave.

    A source sees the plant as it was when the request left; its chunk arrives a delay later.
    While there is no row, the last command is held; before the first one, the measured joints.

    :param settings: of the executor
    :param plant: what is moved
    :param source: makes the chunks
    :param delay: between the two
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        plant: Plant[View],
        source: ChunkSource[View],
        delay: ResponseDelay,
    ) -> None:
        self._plant, self._source, self._delay = plant, source, delay
        self._spacing_ns = settings.keyframe_spacing_ns
        self._executor = ChunkExecutor(settings)
        self._executor.granted(GRANT, 0)
        self._under_way: list[_Due] = []
        self._jumps: list[float] = []

    def run(self, most_ticks: int, most_steps: int = FOREVER) -> ClosedLoopRun:
        """Run until the plant is done or so many rows are played, for no more ticks than that."""
        commands: list[Rows] = []
        steps: list[int] = []
        command, played = self._plant.state(), 0
        while not self._plant.is_done() and played < most_steps and len(commands) < most_ticks:
            now_ns = len(commands) * self._spacing_ns
            self._deliver(now_ns)
            row = self._executor.tick()
            if row is not None:
                command, played = row.values, row.step + 1
                if row.is_seam and row.step:
                    self._jumps.append(self._executor.report().handoff_jump)
            self._ask(now_ns)
            self._plant.apply(command)
            commands.append(command)
            steps.append(played)
        return ClosedLoopRun(
            done=self._plant.is_done() or played >= most_steps,
            ticks=len(commands),
            commands=np.array(commands),
            steps=np.array(steps),
            jumps=np.array(self._jumps),
            report=self._executor.report(),
        )

    def _deliver(self, now_ns: int) -> None:
        while self._under_way and self._under_way[0].at_ns <= now_ns:
            due = heapq.heappop(self._under_way)
            self._executor.accept(due.answer, due.at_ns)

    def _ask(self, now_ns: int) -> None:
        if not self._executor.request_is_due(now_ns):
            return
        draft = self._executor.begin_request(now_ns, Sensed(state=self._plant.state()))
        if draft is None:
            return
        at_ns = now_ns + self._delay.draw_ns()
        answer = self._answer(draft)
        heapq.heappush(
            self._under_way, _Due(at_ns=at_ns, request_id=draft.request_id, answer=answer)
        )
        self._deliver(now_ns)

    def _answer(self, draft: RequestDraft) -> Answer:
        steps, leftover = draft.commitment_steps, draft.leftover
        kept = Commitment.of(steps, len(leftover), max_commitment_steps=FOREVER)
        tie = Tie(
            leftover=leftover,
            frozen_steps=kept.frozen_steps,
            executed_steps=draft.executed_steps,
        )
        return Answer(
            session=draft.session,
            episode=draft.episode,
            request_id=draft.request_id,
            epoch=GRANT.epoch,
            reason=Reason.OK,
            start_step=draft.executed_steps,
            joint_names=self._executor.joint_names,
            rows=self._source.chunk(self._plant.view(), tie),
            frozen_steps=kept.frozen_steps,
            keyframe_spacing_ns=self._spacing_ns,
        )
