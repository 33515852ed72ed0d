# SPDX-License-Identifier: Apache-2.0
"""The near future of the lanes, played forward on the rate table."""

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, replace

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.reference.state import Request, State
from xinfer_ros.sched.settings import ForesightSettings

MAX_STEPS = 1000
SOONER = 1e-5  # late requests per ms: rather sooner than later


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    One request that is live, prepared on the CPU, or foreseen.

    :param due: its deadline, or a later one if it was put off
    :param ready_at: when it can wait for its first stage
    :param request: None while it is not registered
    """

    due: float
    ready_at: float
    request: Request | None
    robot: int


@dataclass(slots=True, kw_only=True)
class Playing:
    """
    A unit that runs in the future played.

    :param items: what it holds, places in ``Outlook.items``
    :param begin: end of its launch overhead
    :param left: its work to be done
    """

    items: list[int]
    stage: int
    begin: float
    left: float


@dataclass(slots=True, kw_only=True)
class Outlook:
    """
    What a rollout starts from. Items are named by their place; every list of places is sorted.

    :param items: by the time they are due
    :param waiting: those that wait for each stage
    :param coming: those that do not wait yet
    :param units: those that run
    :param counts: how many units run in each stage
    """

    items: list[Item]
    waiting: list[list[int]]
    coming: list[int]
    units: list[Playing]
    counts: list[int]

    def copy(self) -> 'Outlook':
        """Return one that can be played without a change to this."""
        return Outlook(
            items=self.items,
            waiting=[list(places) for places in self.waiting],
            coming=list(self.coming),
            units=[replace(unit, items=list(unit.items)) for unit in self.units],
            counts=list(self.counts),
        )

    def batch(self, state: State, stage: int, first: int) -> list[int]:
        """Return what one unit takes along: beside the first, those due next, as many as fit."""
        fit = len(state.calibration.batch_work[stage]) - 1
        if stage == Stage.VIT and (free := state.free_states) is not None:
            fit = min(fit, max(free, 1) - 1)
        return sorted([first, *[i for i in self.waiting[stage] if i != first][:fit]])

    def start(self, state: State, stage: int, items: list[int], now: float) -> None:
        """Start a unit of waiting items."""
        self.waiting[stage] = [i for i in self.waiting[stage] if i not in items]
        begin = now + state.calibration.overhead_ms[stage]
        left = state.predictor.work_ms(stage, len(items))
        self.units.append(Playing(items=items, stage=stage, begin=begin, left=left))
        self.counts[stage] += 1

    def with_later(self, item: int, due: float) -> 'Outlook':
        """Return the outlook with one item due later; items stay in order."""
        last = item
        while last + 1 < len(self.items) and self.items[last + 1].due <= due:
            last += 1

        def moved(places: Iterable[int]) -> list[int]:
            return sorted(last if i == item else i - 1 if item < i <= last else i for i in places)

        later = replace(self.items[item], due=due)
        items = self.items[:item] + self.items[item + 1 : last + 1] + [later]
        return Outlook(
            items=items + self.items[last + 1 :],
            waiting=[moved(places) for places in self.waiting],
            coming=moved(self.coming),
            units=[replace(unit, items=moved(unit.items)) for unit in self.units],
            counts=list(self.counts),
        )


class Rollout:
    """
    Plays an outlook forward: what is urgent starts, the rest waits until it is.

    :param late: of the last play, the items that finish after they are due
    """

    def __init__(self, state: State, settings: ForesightSettings) -> None:
        self._state = state
        self._settings = settings
        self.late: list[int] = []

    def play(self, outlook: Outlook, bound: float = math.inf) -> float:
        """Return the soft count of late items; give up once it exceeds the bound."""
        self._outlook = o = outlook.copy()
        self.late = []
        t, cost = self._state.now, 0.0
        end = t + self._settings.horizon_ms
        for _ in range(MAX_STEPS):
            soonest = min(
                self._start_urgent(t, end), *(o.items[i].ready_at for i in o.coming), end
            )
            ending, then = self._next_end(t, soonest)
            self._progress(t, then)
            t = then
            if ending is not None:
                cost += self._finish(ending, t)
                if cost > bound:
                    return cost
            elif not self._arrive(t) and t >= end:
                break
        return cost + self._beyond(t)

    def _price(self, item: int, finish: float) -> float:
        """Return how late an item is: a soft step at its due time, and a slope after it."""
        due = self._outlook.items[item].due
        if finish > due:
            insort(self.late, item)
        by = finish + self._settings.margin_ms - due
        tardiness = self._settings.tardiness_per_ms * max(by, 0.0)
        try:
            return 1.0 / (1.0 + math.exp(-by / self._settings.sharpness_ms)) + tardiness
        except OverflowError:  # exp(...) is infinite: as far from late as can be
            return tardiness

    def _start_urgent(self, t: float, end: float) -> float:
        """Start what is urgent, later stages first; return when the next waiting item is so."""
        o, soonest = self._outlook, end
        for stage in (Stage.ACTION, Stage.PREFILL, Stage.VIT):
            while o.waiting[stage] and o.counts[stage] < self._state.limits[stage]:
                first = o.waiting[stage][0]
                urgent_at = o.items[first].due - self._settings.urgent_ms
                if urgent_at > t:
                    soonest = min(soonest, urgent_at)
                    break
                o.start(self._state, stage, o.batch(self._state, stage, first), t)
        return soonest

    def _next_end(self, t: float, soonest: float) -> tuple[int | None, float]:
        """Return the unit that ends first, no later than told, and when; else None."""
        ending, load = None, self._state.predictor.load(self._outlook.counts)
        for k, unit in enumerate(self._outlook.units):
            at = max(t, unit.begin) + unit.left * load.inverse[unit.stage]
            if at <= soonest:
                soonest, ending = at, k
        return ending, soonest

    def _progress(self, t: float, then: float) -> None:
        load = self._state.predictor.load(self._outlook.counts)
        for unit in self._outlook.units:
            begin = max(t, unit.begin)
            if then > begin:
                unit.left = max(unit.left - (then - begin) * load.rate[unit.stage], 0.0)

    def _finish(self, ending: int, t: float) -> float:
        """End a unit: its items wait for the next stage, or are paid for."""
        o = self._outlook
        unit = o.units[ending]
        o.units[ending] = o.units[-1]
        o.units.pop()
        o.counts[unit.stage] -= 1
        if unit.stage < Stage.ACTION:
            for item in unit.items:
                insort(o.waiting[unit.stage + 1], item)
            return 0.0
        cost = 0.0
        for item in unit.items:
            finish = t + self._state.calibration.output_ms
            cost += self._price(item, finish) + SOONER * (t - self._state.now)
        return cost

    def _arrive(self, t: float) -> bool:
        """Let those wait whose time has come; return whether there were any."""
        o = self._outlook
        arrived = [i for i in o.coming if o.items[i].ready_at <= t]
        for item in arrived:
            o.coming.remove(item)
            insort(o.waiting[Stage.VIT], item)
        return bool(arrived)

    def _beyond(self, t: float) -> float:
        """Price what is not done at the horizon: it goes on under the load of then, unqueued."""
        o, cost = self._outlook, 0.0
        load = self._state.predictor.load(o.counts)
        for unit in o.units:
            finish = max(unit.begin, t) + unit.left * load.inverse[unit.stage]
            finish += load.rest_ms[unit.stage]
            for item in unit.items:
                cost += self._price(item, finish)
        for stage in Stage:
            for item in o.waiting[stage]:
                cost += self._price(item, t + load.stage_ms[stage] + load.rest_ms[stage])
        return cost
