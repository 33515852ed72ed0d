# SPDX-License-Identifier: Apache-2.0
"""Whole-pipeline batches that leave robots the least time without rows, found by playing ahead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xinfer_ros.sched.reference.group import WholePipeline
from xinfer_ros.sched.reference.state import Request, State
from xinfer_ros.sched.settings_group import LookaheadSettings, pipeline_ms

MAX_PLANNED = 32  # robots, those that run dry first
LIGHTEST = 1e-3  # weight that counts
MAX_PLAN = 10.0  # length of a plan, in batches of the largest size


@dataclass(slots=True, kw_only=True)
class PlayedQueue:
    """
    A robot's queue as it is played forward [ms].

    :param starved: share of its time of late in which it had no row
    :param life: of a chunk
    :param lag: from the end of the lanes to the first row at the robot, and the age of what the
        server knows
    :param left: until it runs dry
    :param cost: counted time without rows
    """

    request: Request
    weight: float
    starved: float
    life: float
    lag: float
    left: float
    cost: float = 0.0


class PlayAhead(WholePipeline):
    """
    Tries every size of the next batch, and for what follows batches of every size.

    Always of those that run dry first; who weighs more may be taken for drier. What starves in the
    play costs; the further off, the less. With protection the cost grows with the square of a
    robot's share, with what it starved of late, and steeply above a floor.
    """

    def __init__(self, state: State, settings: LookaheadSettings) -> None:
        super().__init__(state, settings.max_batch)
        self._settings = settings
        self._pipeline_ms = pipeline_ms(state.calibration)
        self._flat, self._fade, self._speed, self._heaviest = 0.0, 1.0, 1.0, 1.0

    def pick(self, most: int) -> list[Request]:
        """Return the first batch of the play that costs least."""
        self._speed = self.state.predictor.slowdown()
        queues = self._look()
        lives = min(queue.life for queue in queues)
        lightest = max(min(queue.weight for queue in queues), LIGHTEST)
        for queue in queues:
            queue.weight /= lightest  # only their ratio counts
        self._heaviest = max(queue.weight for queue in queues)
        bonuses = self._scale(most, lives)
        queues = sorted(queues, key=lambda queue: queue.left)[:MAX_PLANNED]
        sizes = range(1, min(most, len(queues)) + 1)
        best, chosen = math.inf, [0]
        for size in sizes:
            for bonus in bonuses:
                first = _driest(queues, size, bonus)
                after = [replace(queue) for queue in queues]
                at = self._step(after, first, 0.0)
                cost = min(self._play(after, at, kb, more) for kb in sizes for more in bonuses)
                if cost < best:
                    best, chosen = cost, first
        return [queues[index].request for index in chosen]

    def _look(self) -> list[PlayedQueue]:
        now, output = self.state.now, self.state.calibration.output_ms
        queues = []
        for request in self.by_arrival():
            mirror = self.state.mirrors[request.robot]
            life = mirror.horizon * mirror.spacing
            queue = PlayedQueue(
                request=request,
                weight=self._settings.weight(life),
                starved=1.0 - mirror.moves,
                life=life,
                lag=mirror.link + output,
                left=max(mirror.dry_at - now, 0.0) if mirror.known else 0.0,
            )
            queues.append(queue)
        return queues

    def _scale(self, most: int, shortest: float) -> list[float]:
        """Fix how far is played; return by how much heavier robots may be taken for drier."""
        settings = self._settings
        longest = MAX_PLAN * self._pipeline_ms[most - 1] * self._speed
        self._flat = min(settings.flat * shortest, longest)
        self._fade = max(min(settings.fade * shortest, longest - self._flat), 1.0)
        if self._heaviest > 1.0 and settings.bonus > 0.0:
            return [0.0, settings.bonus * shortest]
        return [0.0]

    def _counted(self, at: float) -> float:
        """Return how much the time up to one counts."""
        if at <= self._flat:
            return at
        over = min(at - self._flat, self._fade)
        return self._flat + over - over * over / (2.0 * self._fade)

    def _step(self, queues: Sequence[PlayedQueue], batch: Sequence[int], at: float) -> float:
        """Let a batch be computed from a time on; return when it is done."""
        took = self._pipeline_ms[len(batch) - 1] * self._speed
        given = set(batch)
        for index, queue in enumerate(queues):
            until = took + queue.lag if index in given else took
            if until > queue.left:
                queue.cost += self._counted(at + until) - self._counted(at + queue.left)
            if index in given:
                queue.left = queue.life - min(queue.left, until) + queue.lag
            else:
                queue.left = max(queue.left - took, 0.0)
        return at + took

    def _play(self, queues: Sequence[PlayedQueue], at: float, size: int, bonus: float) -> float:
        """Return the cost of going on with batches of one size."""
        after = [replace(queue) for queue in queues]
        while at < self._flat + self._fade:
            at = self._step(after, _driest(after, size, bonus), at)
        return self._cost(after)

    def _cost(self, queues: Sequence[PlayedQueue]) -> float:
        settings, everything = self._settings, self._flat + 0.5 * self._fade
        total = 0.0
        for queue in queues:
            share = queue.cost / everything
            if not settings.protection:
                total += queue.weight * share
                continue
            concave = share * (share + settings.memory * queue.starved)
            above = max(queue.starved - settings.floor, 0.0)
            scale = self._heaviest * above  # no weight outdoes the floor
            floor = settings.floor_price * above * (1.0 + scale * scale) * share
            total += queue.weight * queue.weight * concave + floor
        return total


def _driest(queues: Sequence[PlayedQueue], size: int, bonus: float) -> list[int]:
    """Return the indices of those that run dry first; who weighs more is taken for drier."""

    def dry(index: int) -> float:
        return queues[index].left - bonus * (queues[index].weight - 1.0)

    return sorted(range(len(queues)), key=dry)[:size]
