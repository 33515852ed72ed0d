# SPDX-License-Identifier: Apache-2.0
"""The action queue of one robot, as the server can know it. Time in ms, rows in steps; pure."""

import math
from dataclasses import dataclass, field

DEFAULT_SPACING = 1e3 / 30.0  # of a robot that does not tell [ms]
DEFAULT_HORIZON = 16.0  # of a robot that has not shown any [steps]
LINK_RATE = 0.02  # of what is learned of longer delays
LOST = 1000.0  # after which an answer that is not seen is lost [ms]
MEMORY = 3000.0  # over which the share of time in motion is a mean [ms]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """
    What an observation says of a robot's queue.

    :param executed: steps since its session began
    :param leftover: rows that it may still execute
    :param horizon: rows that a fresh chunk is good for, 0: not known
    :param spacing: of its rows, 0: not known [ms]
    """

    executed: float
    leftover: float
    horizon: float
    spacing: float


@dataclass(slots=True, kw_only=True)
class Coming:
    """
    A chunk that is computed, or on its way to the robot.

    :param end: executed steps up to which its rows are good
    :param left: when it left the server, infinite while it is computed [ms]
    :param arrival: at the robot, as foreseen [ms]
    """

    end: float
    left: float = math.inf
    arrival: float = math.inf


@dataclass(slots=True)
class _Queue:
    """Executed steps, the steps up to which rows are good, and the time of it [ms]."""

    steps: float
    good: float
    at: float

    def run(self, until: float, spacing: float) -> None:
        """Let rows be executed until a time."""
        if until > self.at:
            steps = self.steps + (until - self.at) / spacing
            self.steps = min(steps, max(self.steps, self.good))
            self.at = until


@dataclass(slots=True)
class Mirror:
    """
    What a robot has executed, what it may still execute, and what is on its way to it.

    Reconciled at each observation; no clock is shared: delays follow from how soon an observation
    shows an answer. The compiled one is ``src/mirror.hpp``.

    :param known: whether any observation has told
    :param spacing: of the robot's rows [ms]
    :param horizon: rows that a fresh chunk is good for [steps]
    :param link: delay of both ways together [ms]
    :param moves: share of its time in which the robot had a row to execute, of late
    :param error_sum: of ``|foreseen - observed|`` executed steps
    :param error_max: the largest of them
    :param observations: that were foreseen
    """

    known: bool = False
    spacing: float = DEFAULT_SPACING
    horizon: float = DEFAULT_HORIZON
    link: float = 0.0
    moves: float = 1.0
    error_sum: float = 0.0
    error_max: float = 0.0
    observations: int = 0
    _seen: _Queue = field(default_factory=lambda: _Queue(0.0, 0.0, 0.0))
    _coming: list[Coming] = field(default_factory=list)  # in the order of their computation

    @property
    def start(self) -> float:
        """Return the executed steps at the newest observation: where the next chunk starts."""
        return self._seen.steps

    @property
    def computes(self) -> bool:
        """Return whether a chunk is computed."""
        return bool(self._coming) and self._coming[-1].left == math.inf

    def observe(self, now: float, sight: Sight) -> None:
        """Take in what the robot has seen of its queue half a link ago."""
        sampled = now - 0.5 * self.link
        if sight.executed < self.start:  # another robot, or another session
            self.known = False
            self._coming.clear()
        if self.known:
            self._compare(sampled, sight.executed)
        self.known = True
        if sight.spacing > 0.0:
            self.spacing = sight.spacing
        if sight.horizon > 0.0:
            self.horizon = sight.horizon
        elif sight.leftover > 0.0:
            self.horizon = (
                max(self.horizon, sight.leftover) if self.observations > 0 else sight.leftover
            )
        self._seen = _Queue(sight.executed, sight.executed + sight.leftover, sampled)
        self._reconcile(now, sampled)

    def _compare(self, sampled: float, executed: float) -> None:
        """Learn from what was foreseen of an observation."""
        error = abs(self.executed_at(sampled) - executed)
        self.error_sum += error
        self.error_max = max(self.error_max, error)
        self.observations += 1
        passed = sampled - self._seen.at
        if passed > 0.0:
            share = min((executed - self._seen.steps) * self.spacing / passed, 1.0)
            self.moves += passed / (passed + MEMORY) * (share - self.moves)

    def _reconcile(self, now: float, sampled: float) -> None:
        """Forget what the robot has, or never got; learn the link from the first sight of it."""
        kept = []
        for chunk in self._coming:
            waits = chunk.left == math.inf
            if not waits and chunk.end <= self._seen.good:
                self._learn(now - chunk.left)
                continue
            if not waits and now - chunk.left > LOST:
                continue
            if not waits:
                chunk.arrival = max(chunk.arrival, sampled)  # it is later than foreseen
            kept.append(chunk)
        self._coming = kept

    def _learn(self, seen: float) -> None:
        """Take in how long after an answer left it was seen: both ways, or any time more."""
        if self.link == 0.0 or seen < self.link:
            self.link = max(seen, 0.0)
        else:
            self.link += min(LINK_RATE * (seen - self.link), LINK_RATE * self.spacing)

    def compute(self) -> None:
        """Take in that a chunk is computed from the newest observation from now on."""
        if self.known:
            self.withdraw()
            self._coming.append(Coming(end=self.start + self.horizon))

    def withdraw(self) -> None:
        """Take in that its computation ends without it."""
        if self.computes:
            self._coming.pop()

    def send(self, now: float, output: float) -> None:
        """Take in that it leaves the server."""
        if self.computes:
            self._coming[-1].left = now + output
            self._coming[-1].arrival = now + output + 0.5 * self.link

    def executed_at(self, t: float) -> float:
        """Return the steps that the robot has executed at a time, with what is on its way."""
        return self._at(t).steps

    def queued_at(self, t: float) -> float:
        """Return the rows that it has left at a time, with what is on its way [steps]."""
        queue = self._at(t)
        return max(queue.good - queue.steps, 0.0)

    def _at(self, t: float) -> _Queue:
        queue = _Queue(self._seen.steps, self._seen.good, self._seen.at)
        for chunk in self._coming:
            if chunk.arrival < t:
                queue.run(chunk.arrival, self.spacing)
                queue.good = max(queue.good, chunk.end)
        queue.run(t, self.spacing)
        return queue

    @property
    def good_until(self) -> float:
        """Return the executed steps up to which it has rows, those on their way among them."""
        sent = [chunk.end for chunk in self._coming if chunk.left < math.inf]
        return max([self._seen.good, *sent])

    @property
    def dry_at(self) -> float:
        """Return when the robot has executed everything that it has and that is on its way."""
        queue = _Queue(self._seen.steps, self._seen.good, self._seen.at)
        for chunk in self._coming:
            if chunk.arrival < math.inf:
                queue.run(chunk.arrival, self.spacing)
                queue.good = max(queue.good, chunk.end)
        return queue.at + max(queue.good - queue.steps, 0.0) * self.spacing
