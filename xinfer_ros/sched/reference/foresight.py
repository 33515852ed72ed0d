# SPDX-License-Identifier: Apache-2.0
"""
The default policy.

What is urgent starts; other work starts early only if playing the near future forward finds nobody
hurt; robots with time to spare are asked back at the next gap.
"""

import math

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.progress import Load
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.reference.pacing import Pacing
from xinfer_ros.sched.reference.policy import STAGE_ORDER, Policy
from xinfer_ros.sched.reference.rollout import Item, Outlook, Playing, Rollout
from xinfer_ros.sched.reference.state import Request, Robot, State
from xinfer_ros.sched.settings import ForesightSettings

MAX_ITEMS = 64  # looked at: those that run, then those due first
LEAST_LEFT = 0.3  # work left of a unit that should have ended by the table [ms]
LEAST_WAIT = 0.1  # until a foreseen request can be registered [ms]
SHED_ROUNDS = 3  # requests put off in one pass
ALONE = (0, 0, 0)
SHED_TRIES = 4  # late requests of which the best one is put off


class Foresight(Policy):
    """Urgent work starts; the rest if a rollout finds it harmless."""

    def __init__(self, state: State, settings: ForesightSettings) -> None:
        super().__init__(state)
        self._settings = settings
        self._pacing = Pacing(state, settings)
        self._allowance = settings.shed_burst / 2.0  # requests that may be put off now

    def pace(self, robot: int) -> float:
        """Return the time between the arrivals of a robot that suits the fleet."""
        self._allowance = min(
            self._allowance + self._settings.shed_share, self._settings.shed_burst
        )
        return self._pacing.next(robot)

    def shields(self, request: Request) -> bool:
        """Return whether a request is urgent."""
        alone = self.state.predictor.load(ALONE)
        return self._due(alone, request) - self.state.now <= self._settings.urgent_ms

    def choose(self) -> None:
        """Look ahead, put off whom it is best to, then start what may start, stage by stage."""
        state = self.state
        if not any(state.ready[stage] and state.has_room(stage) for stage in Stage):
            return
        self._rollout = Rollout(state, self._settings)
        self._outlook = self._look()
        self._cost = self._shed()
        for stage in STAGE_ORDER:
            self._start_stage(stage)

    def _start_stage(self, stage: Stage) -> None:
        """Start, by the time they are due, the urgent ones and up to ``tries`` others."""
        state, tries = self.state, 0
        while (waiting := self._outlook.waiting[stage]) and state.has_room(stage):
            items = self._outlook.batch(state, stage, waiting[0])
            urgent = self._outlook.items[waiting[0]].due - state.now <= self._settings.urgent_ms
            if urgent:
                self._cost = None
            elif tries >= self._settings.tries or not self._is_harmless(stage, items):
                return
            else:
                tries += 1
            requests = [self._request(item) for item in items]
            self._outlook.start(state, stage, items, state.now)
            self.launch(requests, Verdict.ISSUED_PROTECTED if urgent else Verdict.ISSUED)

    def _is_harmless(self, stage: Stage, items: list[int]) -> bool:
        """Return whether an early start adds no more late requests than are tolerated."""
        if self._cost is None:
            self._cost = self._rollout.play(self._outlook)
        with_it = self._outlook.copy()
        with_it.start(self.state, stage, items, self.state.now)
        bound = self._cost + self._settings.tolerance
        cost = self._rollout.play(with_it, bound)
        if cost > bound:
            self.note(
                self._request(items[0]),
                Verdict.DEFERRED_ROLLOUT,
                against=self._hurt(),
                slack=self._cost,
                cost=cost,
            )
            return False
        self._cost = cost
        return True

    def _request(self, item: int) -> Request:
        request = self._outlook.items[item].request
        assert request is not None, 'only registered requests wait'
        return request

    def _hurt(self) -> int | None:
        """Return the key of the first registered request that the rollout found late."""
        late = (self._outlook.items[item].request for item in self._rollout.late)
        return next((request.key for request in late if request is not None), None)

    def _due(self, alone: Load, request: Request) -> float:
        """Return when a request counts as due: later, if it is late in any case."""
        due = request.deadline + request.put_off
        finish = self.state.now + self.state.remaining(alone, request)
        if finish <= due or self._settings.hopeless_share <= 0.0:
            return due
        # it makes room, and comes back soon
        step = self._settings.hopeless_share * min(request.budget, self._settings.urgent_ms)
        return due + step * math.ceil((finish - due) / step)

    def _look(self) -> Outlook:
        """Return live requests, those in CPU preparation, and each robot's next one."""
        state = self.state
        alone = state.predictor.load(ALONE)
        items = []
        for request in state.live:
            due = self._due(alone, request)
            items.append(Item(due=due, ready_at=state.now, request=request, robot=request.robot))
        for number, robot in enumerate(state.robots):
            arrival = self._next_arrival(robot)
            if arrival is None:
                continue
            ready_at = max(arrival + state.front_end, state.now + LEAST_WAIT)
            if ready_at < state.now + self._settings.horizon_ms:
                due = arrival + robot.budget - self._settings.reserved_ms
                items.append(Item(due=due, ready_at=ready_at, request=None, robot=number))
        items = sorted(items, key=lambda i: (not _runs(i), i.due, i.robot))[:MAX_ITEMS]
        return self._laid_out(sorted(items, key=lambda i: (i.due, i.robot)))

    def _next_arrival(self, robot: Robot) -> float | None:
        """Return when a robot's request arrives that is not registered; None if none is near."""
        if not robot.known or (robot.in_server and not robot.announced):
            return None
        arrival = robot.last_arrival
        if not robot.announced:
            arrival += max(robot.period, robot.paced)
        if self.state.now > arrival + self._settings.gone_ms:
            return None
        if robot.announced:
            return arrival
        return max(arrival, robot.returned + self._settings.back_ms, self.state.now)

    def _laid_out(self, items: list[Item]) -> Outlook:
        """Return the outlook on items: what waits, what comes, what runs."""
        waiting: list[list[int]] = [[] for _ in Stage]
        coming: list[int] = []
        units: dict[int, Playing] = {}
        for i, item in enumerate(items):
            request = item.request
            if request is None:
                coming.append(i)
            elif request.unit is None:
                waiting[request.stage].append(i)
            elif request.unit.number in units:
                units[request.unit.number].items.append(i)
            else:
                progress = request.unit.progress
                units[request.unit.number] = Playing(
                    items=[i],
                    stage=progress.stage,
                    begin=progress.begin_ms,
                    left=max(progress.left_ms, LEAST_LEFT),
                )
        return Outlook(
            items=items,
            waiting=waiting,
            coming=coming,
            units=list(units.values()),
            counts=list(self.state.running),
        )

    def _shed(self) -> float | None:
        """
        Put off late requests, one at a time, where that saves others.

        :returns: the soft count of late requests if all wait, None if it is not known
        """
        cost: float | None = None
        for _ in range(SHED_ROUNDS):
            if self._allowance < 1.0:
                break
            cost = self._rollout.play(self._outlook)
            if cost < self._settings.shed_at:
                break
            waiting = {i for places in self._outlook.waiting for i in places}
            late = [i for i in self._rollout.late if i in waiting]
            best, least = None, cost - self._settings.shed_gain
            for item in late[:SHED_TRIES]:
                request = self._request(item)
                spared = self.state.now < self.state.robots[request.robot].spared_until
                if request.put_off > 0.0 or spared:
                    continue
                other = self._rollout.play(self._put_off(item), least)
                if other < least:
                    best, least = item, other
            if best is None:
                break
            self._give_up(best, cost, least)
            cost = None
        return cost

    def _respite(self, request: Request) -> float:
        """
        Return how much later a request is due once it is put off [ms].

        It must still be answered before its robot gives it up.
        """
        patience = max(2.0 * request.budget, self._settings.patience_ms)
        latest = request.arrival + patience - self._settings.back_ms
        return max(min(self._settings.put_off_ms, latest - request.deadline), 0.0)

    def _put_off(self, item: int) -> Outlook:
        due = self._outlook.items[item].due + self._respite(self._request(item))
        return self._outlook.with_later(item, due)

    def _give_up(self, item: int, cost: float, cost_after: float) -> None:
        """Put a request off for good."""
        request = self._request(item)
        self.note(request, Verdict.PUT_OFF, slack=cost, cost=cost_after)
        self._outlook = self._put_off(item)
        request.put_off = self._respite(request)
        robot = self.state.robots[request.robot]
        robot.spared_until = self.state.now + self._settings.spare_ms
        self._allowance -= 1.0


def _runs(item: Item) -> bool:
    return item.request is not None and item.request.unit is not None
