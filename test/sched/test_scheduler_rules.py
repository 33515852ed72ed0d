# SPDX-License-Identifier: Apache-2.0
"""Whatever order things happen in: stages in order, every request ends exactly once."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.rate_table import Counts
from xinfer_ros.sched.registry import make_scheduler
from xinfer_ros.sched.scheduler import Scheduler
from xinfer_ros.sched.settings import POLICIES, policy_settings

from .requests import MS, device, request

operations = st.lists(
    st.one_of(
        st.tuples(st.just('submit'), st.integers(1, 600)),
        st.tuples(st.sampled_from(['complete', 'complete', 'fail']), st.integers(0, 5)),
        st.tuples(st.sampled_from(['cancel', 'budget', 'announce']), st.integers(0, 20)),
        st.tuples(st.just('pass'), st.integers(0, 400)),
    ),
    max_size=80,
)
bounds = st.tuples(*(st.integers(1, 3) for _ in Stage))


class Audit:
    """Runs a scheduler and holds its decisions against its rules."""

    def __init__(self, scheduler: Scheduler, lanes: Counts, policy: str) -> None:
        self._scheduler, self._lanes, self._in_order = scheduler, lanes, policy == 'fifo'
        self.now_ns = 0
        self.stage: dict[int, Stage | None] = {}  # of live requests: the stage that comes next
        self.running: dict[int, Unit] = {}
        self.cancelled: set[int] = set()
        self.held_back: set[int] = set()  # that have ended and are not answered yet
        self.ends: Counter[int] = Counter()
        self._last_unit = 0

    def dispatch(self) -> None:
        """Start what the scheduler wants, and check each unit."""
        self._release()
        busy = {r.key for unit in self.running.values() for r in unit.requests}
        for unit in self._scheduler.dispatch(self.now_ns):
            keys = [r.key for r in unit.requests]
            assert unit.number > self._last_unit
            self._last_unit = unit.number
            assert keys
            assert not busy & set(keys)
            assert all(self.stage[key] is unit.stage for key in keys)
            if self._in_order:
                waiting = [k for k, s in self.stage.items() if s is unit.stage and k not in busy]
                assert keys == [min(waiting)]
            busy |= set(keys)
            self.running[unit.number] = unit
            on_lane = [u for u in self.running.values() if u.stage is unit.stage]
            assert len(on_lane) <= self._lanes[unit.stage]
        waits = []
        for stage, limit in zip(Stage, self._lanes, strict=True):
            used = sum(unit.stage is stage for unit in self.running.values())
            ready = [k for k, s in self.stage.items() if s is stage and k not in busy]
            waits.append(used < limit and bool(ready))
        assert self._scheduler.waits == any(waits)
        assert not (self._in_order and any(waits))

    def _release(self) -> None:
        """Let go what was held back: all of it or nothing."""
        given_up, held_back = self.held_back & self.cancelled, self.held_back
        finished, dropped = self._scheduler.release(self.now_ns)
        if finished or dropped:
            assert set(self.end(dropped)) == given_up
            assert set(self.end([done.request for done in finished])) == held_back - given_up
            self.held_back = set()

    def end(self, requests: list[Request]) -> list[int]:
        """Note that requests have ended; return their keys."""
        keys = [r.key for r in requests]
        for key in keys:
            self.ends[key] += 1
            self.cancelled.discard(key)
            del self.stage[key]
        return keys

    def submit(self, key: int, budget_ms: int) -> None:
        """Hand in a request."""
        self._scheduler.submit(request(key, self.now_ns, budget_ms * MS), self.now_ns)
        self.stage[key] = Stage.VIT

    def complete(self, number: int) -> None:
        """Let a unit end well."""
        unit = self.running.pop(number)
        finished, dropped = self._scheduler.complete(unit, self.now_ns)
        keys = {r.key for r in unit.requests}
        if unit.stage is Stage.ACTION and not finished and not dropped:
            self.held_back |= keys
            self.stage |= dict.fromkeys(keys)
            return
        given_up = keys & self.cancelled
        assert set(self.end(dropped)) == given_up
        last = unit.stage is Stage.ACTION
        assert set(self.end([done.request for done in finished])) == (
            keys - given_up if last else set()
        )
        for key in keys & set(self.stage):
            self.stage[key] = unit.stage.following

    def fail(self, number: int) -> None:
        """Let a unit fail."""
        unit = self.running.pop(number)
        gone = self.end(self._scheduler.fail(unit, self.now_ns))
        assert gone == [r.key for r in unit.requests]

    def cancel(self, key: int) -> None:
        """Cancel a request, which may wait, run, have ended or never have been."""
        runs = any(r.key == key for unit in self.running.values() for r in unit.requests)
        runs |= key in self.held_back
        gone = self._scheduler.cancel(key, self.now_ns)
        assert (gone is not None) == (key in self.stage and not runs)
        if gone is not None:
            assert self.end([gone]) == [key]
        elif runs:
            self.cancelled.add(key)

    def expire(self) -> None:
        """Let time have its way."""
        busy = {r.key for unit in self.running.values() for r in unit.requests}
        expired = self._scheduler.expire(self.now_ns)
        assert all(self.now_ns >= r.expires_ns for r in expired)
        assert not busy & set(self.end(expired))


@pytest.mark.parametrize('policy', sorted(POLICIES))
@settings(deadline=None, derandomize=True, max_examples=100)
@given(lanes=bounds, max_batch=st.integers(1, 3), sequence=operations)
def test_every_request_keeps_the_order_of_stages_and_ends_exactly_once(
    policy: str, lanes: Counts, max_batch: int, sequence: list[tuple[str, int]]
) -> None:
    """Stage order, lane limits, order of arrival (fifo), and one end each, whatever happens."""
    calibration = device(lanes, max_batch)
    scheduler = make_scheduler(policy, calibration)
    lanes = policy_settings(policy, calibration).limits(calibration)
    audit = Audit(scheduler, lanes, policy)
    submitted = 0
    for operation, value in sequence:
        if operation == 'submit':
            submitted += 1
            audit.submit(submitted, value)
        elif operation == 'announce':
            scheduler.announce(value, audit.now_ns, 90 * MS, 180 * MS, audit.now_ns)
        elif operation == 'pass':
            audit.now_ns += value * MS
        elif operation == 'cancel':
            audit.cancel(value)
        elif operation == 'budget':
            scheduler.set_budget(value, 5 * MS)
        elif audit.running:
            number = sorted(audit.running)[value % len(audit.running)]
            if operation == 'complete':
                audit.complete(number)
            else:
                audit.fail(number)
        audit.expire()
        audit.dispatch()
    while audit.stage:
        while audit.running:
            audit.complete(min(audit.running))
            audit.dispatch()
        audit.now_ns += 2 * MS
        audit.expire()
        audit.dispatch()
    assert audit.ends == Counter(range(1, submitted + 1))
