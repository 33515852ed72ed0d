# SPDX-License-Identifier: Apache-2.0
"""Groups of requests that pass the stages together: one at a time, or two in lockstep."""

import abc
from collections.abc import Sequence

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.reference.policy import Policy
from xinfer_ros.sched.reference.state import Request, State
from xinfer_ros.sched.settings_group import DynamicBatchSettings, RobionSettings


class Group:
    """
    Requests that pass stage after stage together; who has ended or is gone leaves it.

    :param members: in the order of the batch
    """

    def __init__(self, members: Sequence[Request] = ()) -> None:
        self._members = list(members)

    def __bool__(self) -> bool:
        """Return whether anybody is in it."""
        return bool(self._members)

    def tidy(self, live: Sequence[Request]) -> None:
        """Let those go that have ended or are gone."""
        keys = {request.key for request in live}
        self._members = [request for request in self._members if request.key in keys]

    def stage(self) -> int:
        """Return the first stage that a member has not passed, one beyond the last if none is."""
        return min((int(request.stage) for request in self._members), default=len(Stage))

    def batch(self, stage: int, size: int) -> list[Request]:
        """Return members that wait for a stage, as many as one unit takes."""
        waiting = [r for r in self._members if r.stage == stage and r.unit is None]
        return waiting[:size]


class GroupPolicy(Policy):
    """A policy that serves groups: nobody in a group is a stage ahead of the others."""

    def issue(self, group: Group) -> None:
        """Start what the lane of the group's stage takes."""
        stage = group.stage()
        if stage == len(Stage):
            return
        size = len(self.state.calibration.batch_work[stage])
        while self.state.has_room(stage) and (batch := group.batch(stage, size)):
            self.launch(batch, Verdict.ISSUED)

    def room(self, most: int) -> int:
        """Return how many requests may enter ViT, at most so many."""
        free = self.state.free_states
        return most if free is None else max(min(most, free), 0)

    def by_arrival(self) -> list[Request]:
        """Return those that wait for ViT."""
        return sorted(self.state.ready[Stage.VIT], key=lambda request: request.key)


class WholePipeline(GroupPolicy):
    """One group at a time, through the whole pipeline, nothing beside it."""

    def __init__(self, state: State, max_batch: int) -> None:
        super().__init__(state)
        self._max_batch = max_batch
        self._group = Group()

    def choose(self) -> None:
        """Form a group if there is none, and start its next units."""
        self._group.tidy(self.state.live)
        most = self.room(self._max_batch)
        if not self._group and most > 0 and self.state.ready[Stage.VIT]:
            self._group = Group(self.pick(most))
        self.issue(self._group)

    @abc.abstractmethod
    def pick(self, most: int) -> list[Request]:
        """Return who of those that wait for ViT goes next, at most so many; nobody to wait."""


class DynamicBatch(WholePipeline):
    """By arrival; a batch leaves when it is full or when its first has waited long enough."""

    def __init__(self, state: State, settings: DynamicBatchSettings) -> None:
        super().__init__(state, settings.max_batch)
        self._wait = settings.wait_ms

    def pick(self, most: int) -> list[Request]:
        """Return the oldest, if they need not wait."""
        waiting = self.by_arrival()
        waited = self.state.now - waiting[0].queued
        if len(waiting) < most and waited < self._wait:
            self.note(waiting[0], Verdict.DEFERRED_BATCH, slack=self._wait - waited)
            return []
        return waiting[:most]


class Lockstep(GroupPolicy):
    """Rounds: ViT and Prefill of one group beside Action of the group before it."""

    def __init__(self, state: State, settings: RobionSettings) -> None:
        super().__init__(state)
        self._size = settings.group
        self._publish_at_barrier = settings.publish_at_barrier
        self._context, self._action = Group(), Group()

    @property
    def holds_back(self) -> bool:
        """Return whether answers leave at the end of a round."""
        return self._publish_at_barrier

    def releases(self) -> bool:
        """Return whether the round is over: its Context waits for Action, its Action has ended."""
        self._context.tidy(self.state.live)
        self._action.tidy(self.state.live)
        return not self._action and self._context.stage() >= Stage.ACTION

    def choose(self) -> None:
        """Begin a round if none runs, and start the next units of both groups."""
        if self.releases():
            self._action = self._context
            self._context = Group(self.by_arrival()[: self.room(self._size)])
        self.issue(self._action)
        if self._context.stage() < Stage.ACTION:
            self.issue(self._context)
