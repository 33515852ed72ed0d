# SPDX-License-Identifier: Apache-2.0
"""Robots that ask in a closed loop, served first come, first served, without a scheduler."""

import heapq
import queue
import statistics
import threading
from collections.abc import Iterator

from xinfer_ros.core.batch import Batch
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.adapter import StagedModel

PERIOD_NS, MEDIAN_NS = 180_000_000, 150_000_000


class Fleet:
    """
    Robots that ask in a closed loop, and a first-come pipeline of lanes that serves them.

    :param model: bound to a slot and a state for each robot
    :param workers: threads of each lane
    :param largest: members of a unit of each lane; it takes whoever waits, and waits for nobody
    """

    def __init__(
        self, model: StagedModel, clock: MonotonicClock, workers: int, largest: dict[Stage, int]
    ) -> None:
        self._model, self._clock, self._largest = model, clock, largest
        self._waiting = {stage: queue.SimpleQueue[int | None]() for stage in Stage}
        self._ended: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, args=(stage, worker), daemon=True)
            for stage in Stage
            for worker in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the lanes."""
        for stage in Stage:
            for _ in self._threads:
                self._waiting[stage].put(None)
        for thread in self._threads:
            thread.join()

    def median_ns(self, robots: int, seconds: float) -> float:
        """Return the median response time of so many robots, the first second left out [ns]."""
        start = self._clock.now_ns()
        end = start + round((1 + seconds) * 1e9)
        due = [(start + PERIOD_NS * robot // robots, robot) for robot in range(robots)]
        sent: dict[int, int] = {}
        responses = []
        while due or sent:
            now = self._clock.now_ns()
            while due and due[0][0] <= now:
                _, robot = heapq.heappop(due)
                sent[robot] = now
                self._waiting[Stage.VIT].put(robot)
            try:
                done = self._ended.get(timeout=(due[0][0] - now) / 1e9 if due else None)
            except queue.Empty:
                continue
            if isinstance(done, Exception):
                raise done
            now, asked = self._clock.now_ns(), sent.pop(done)
            if asked - start > 1e9:
                responses.append(now - asked)
            if now < end:
                heapq.heappush(due, (max(asked + PERIOD_NS, now), done))
        return statistics.median(responses)

    def _members(self, stage: Stage) -> Iterator[int]:
        """Yield who waits for a stage; the first is waited for."""
        robot = self._waiting[stage].get()
        for _ in range(self._largest[stage] - 1):
            if robot is None:
                return
            yield robot
            try:
                robot = self._waiting[stage].get_nowait()
            except queue.Empty:
                return
        if robot is not None:
            yield robot

    def _work(self, stage: Stage, worker: int) -> None:
        following = stage.following
        while members := tuple(self._members(stage)):
            try:
                self._model.run(stage, Batch(slot_ids=members, state_ids=members, worker=worker))
            except Exception as error:
                self._ended.put(error)
                return
            for robot in members:
                (self._ended if following is None else self._waiting[following]).put(robot)


def largest_fleet(fleet: Fleet, most: int, seconds: float) -> int:
    """Return how many robots have a median below 150 ms; each step is printed."""
    good, bad = 0, most + 1
    while bad - good > 1:
        robots = min(max(2 * good, 1), most) if bad > most else (good + bad) // 2
        if robots == good:
            break
        median = fleet.median_ns(robots, seconds)
        print(f'  {robots} robots: median response {median / 1e6:.1f} ms')
        good, bad = (robots, bad) if median < MEDIAN_NS else (good, robots)
    return good
