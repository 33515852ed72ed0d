# SPDX-License-Identifier: Apache-2.0
"""Whole-pipeline batches by the executed steps that they gain per time of the device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xinfer_ros.sched.mirror import Mirror
from xinfer_ros.sched.reference.group import WholePipeline
from xinfer_ros.sched.reference.state import Request, State
from xinfer_ros.sched.settings_group import LookaheadSettings, pipeline_ms


@dataclass(slots=True, kw_only=True)
class PlannedQueue:
    """
    A robot's queue as it is planned; steps and ms.

    :param request: that waits
    :param steps: executed at ``at``
    :param good: steps up to which it has rows
    :param start: of a chunk that is computed next
    :param end: steps up to which the chunk to come is good
    :param arrival: of that chunk, infinite if there is none
    """

    request: Request
    weight: float
    spacing: float
    horizon: float
    link: float
    steps: float = 0.0
    good: float = 0.0
    at: float
    start: float = 0.0
    end: float = 0.0
    arrival: float = math.inf

    def run(self, until: float) -> None:
        """Let time pass."""
        if self.arrival <= until:
            self._move(self.arrival)
            self._take()
        self._move(until)

    def _take(self) -> None:
        self.good = max(self.good, self.end)
        self.arrival = math.inf

    def _move(self, until: float) -> None:
        if until > self.at:
            steps = self.steps + (until - self.at) / self.spacing
            self.steps = min(steps, max(self.steps, self.good))
            self.at = until

    def steps_at(self, t: float) -> float:
        """Return the steps that will have been executed at a time."""
        then = replace(self)
        then.run(t)
        return then.steps

    def give(self, t: float, done: float) -> None:
        """Let the robot have a chunk that is computed from ``t`` to ``done``."""
        self.run(t)
        if self.arrival < math.inf:  # it is on its way: nearly there
            self._take()
        self.end = self.start + self.horizon
        self.arrival = done + self.link

    @property
    def dry_at(self) -> float:
        """Return when its rows are used up, without the chunk to come."""
        return self.at + (self.good - self.steps) * self.spacing


class Lookahead(WholePipeline):
    """Tries every size of the next batch and of those after it; see ``LookaheadSettings``."""

    def __init__(self, state: State, settings: LookaheadSettings) -> None:
        super().__init__(state, settings.max_batch)
        self._settings = settings
        self._pipeline_ms = pipeline_ms(state.calibration)
        self._queues: list[PlannedQueue] = []
        self._end = self._best = 0.0
        self._first: list[Request] = []
        self._best_first: list[Request] = []

    def pick(self, most: int) -> list[Request]:
        """Return the first batch of the best plan."""
        settings, now = self._settings, self.state.now
        self._queues = [self._look(request) for request in self.by_arrival()]
        shortest = min(queue.horizon * queue.spacing for queue in self._queues)
        longest = settings.depth * self._duration(most)
        self._end = now + max(longest, settings.window * shortest)
        self._best = -1.0
        self._plan(0, now, most, self._queues)
        return self._best_first

    def _duration(self, size: int) -> float:
        return self._pipeline_ms[size - 1] * self.state.predictor.slowdown()

    def _look(self, request: Request) -> PlannedQueue:
        mirror = self.state.mirrors[request.robot]
        queue = PlannedQueue(
            request=request,
            weight=self._weight(mirror),
            spacing=mirror.spacing,
            horizon=mirror.horizon,
            link=0.5 * mirror.link + self.state.calibration.output_ms,
            at=self.state.now,
        )
        if mirror.known:
            queue.steps = mirror.executed_at(self.state.now)
            queue.good = mirror.good_until
            queue.start = mirror.start
        return queue

    def _weight(self, mirror: Mirror) -> float:
        settings = self._settings
        weight = settings.weight(mirror.horizon * mirror.spacing)
        if not settings.protection:
            return weight
        return math.sqrt(weight) / math.pow(
            max(mirror.moves, settings.least_share), settings.fairness
        )

    def _plan(self, level: int, t: float, most: int, queues: Sequence[PlannedQueue]) -> None:
        """Try every size of the batch that starts at ``t``, and of those after it."""
        for size in range(1, min(most, len(queues)) + 1):
            done = t + self._duration(size)
            chosen = self._largest_gains(size, t, done, queues)
            after = [replace(queue) for queue in queues]
            for index in chosen:
                after[index].give(t, done)
            if level == 0:
                self._first = [queues[index].request for index in chosen]
            for queue in after:
                queue.run(done)
                queue.start = queue.steps
            if level + 1 < self._settings.depth:
                self._plan(level + 1, done, most, after)
            else:
                self._judge(done, after)

    def _largest_gains(
        self, size: int, t: float, done: float, queues: Sequence[PlannedQueue]
    ) -> list[int]:
        """Return who gains most from a chunk; of equal ones, who runs dry first."""
        end = done if self._settings.objective == 'page' else self._end
        gains = []
        for index, queue in enumerate(queues):
            given = replace(queue)
            given.give(t, done)
            gain = queue.weight * (given.steps_at(end) - queue.steps_at(end))
            gains.append((-gain, queue.dry_at, index))
        return [index for _, _, index in sorted(gains)[:size]]

    def _judge(self, done: float, after: Sequence[PlannedQueue]) -> None:
        """Keep a plan if it gains more steps per time that the device needs for it."""
        gained = 0.0
        for before, queue in zip(self._queues, after, strict=True):
            if self._settings.objective == 'page':
                steps = queue.steps_at(done) - before.steps
            else:
                steps = queue.steps_at(self._end) - before.steps_at(self._end)
            gained += before.weight * steps
        score = gained / (done - self.state.now)
        if score > self._best:
            self._best, self._best_first = score, self._first
