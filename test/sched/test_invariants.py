# SPDX-License-Identifier: Apache-2.0
"""What no scheduling policy may do, whatever happens to it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings import POLICIES, policy_settings

from .driven_core import Make

MS = 1_000_000
TICK_NS = 20 * MS
BATCHES = ((1.0, 1.6), (1.0, 1.7, 2.5), (1.0, 1.2, 1.4, 1.6))
LAST_TICK = 400  # 8 s: nobody may wait longer on an idle device

# what happens: after how long [ms], and what; a number chooses among what there is
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(['submit', 'submit', 'end', 'end', 'cancel', 'fail', 'budget']),
        st.integers(0, 1000),
    ),
    max_size=60,
)


NARROW: dict[str, Any] = {'stage_overlap': False, 'max_held': 3}


class Watch:
    """Drives a core and checks each of its answers."""

    def __init__(
        self, core: SchedulerCore, calibration: Calibration, policy: str, *, narrow: bool = False
    ) -> None:
        self._core, self._narrow = core, narrow
        self._held: set[int] = set()  # whose ViT has started
        self._limits = policy_settings(policy, calibration).limits(calibration)
        self._max_batch = [len(batch) for batch in calibration.batch_work]
        self.now_ns = 0
        self._last_key = 0
        self.stage: dict[int, Stage] = {}  # that each live request waits for, or runs
        self.units: dict[int, tuple[Stage, tuple[int, ...]]] = {}
        self.held_back: list[int] = []  # that have ended and are not answered yet
        self.ended: Counter[int] = Counter()

    def happens(self, event: str, number: int) -> None:
        """Let one thing happen."""
        if event == 'submit':
            self._submit(budget_ms=(60, 90, 150, 400)[number % 4], robot=number % 12)
        elif event == 'end' and self.units:
            self.end(sorted(self.units)[number % len(self.units)])
        elif event == 'fail' and self.units:
            failed = sorted(self.units)[number % len(self.units)]
            self._core.withdraw(self.now_ns, failed)
            self._forget(*self.units.pop(failed)[1])
        elif event == 'cancel' and self.stage:
            self._cancel(sorted(self.stage)[number % len(self.stage)])
        elif event == 'budget':
            self._core.set_budget(1 + number % (self._last_key + 1), (60 + number) * MS)
        self.dispatch()

    def _submit(self, budget_ms: int, robot: int) -> None:
        self._last_key += 1
        self.stage[self._last_key] = Stage.VIT
        self._core.submit(
            now_ns=self.now_ns,
            key=self._last_key,
            robot=robot,
            arrival_ns=self.now_ns,
            budget_ns=budget_ms * MS,
            reserved_ns=4 * MS,
            period_ns=180 * MS,
        )
        self._core.observe(
            now_ns=self.now_ns,
            robot=robot,
            executed_steps=self.now_ns // (33 * MS),
            leftover_steps=budget_ms % 16,
            horizon_steps=16,
            spacing_ns=33 * MS,
        )

    def _cancel(self, key: int) -> None:
        runs = any(key in keys for _, keys in self.units.values())
        assert self._core.cancel(self.now_ns, key) is not runs
        if not runs:
            self._forget(key)

    def _forget(self, *keys: int) -> None:
        self._held -= set(keys)
        for key in keys:
            del self.stage[key]
            self.ended[key] += 1

    def end(self, number: int) -> None:
        """Let a unit end: only Action finishes requests, and it finishes all of them."""
        stage, keys = self.units.pop(number)
        finished = tuple(self._core.complete(self.now_ns, number))
        assert finished in ((keys, ()) if stage is Stage.ACTION else ((),))
        for key in keys:
            if stage.following is not None:
                self.stage[key] = stage.following
            else:
                del self.stage[key]
        if stage is Stage.ACTION and not finished:
            self.held_back += keys
        self._answered(finished)

    def _answered(self, keys: Sequence[int]) -> None:
        self._held -= set(keys)
        self.ended.update(keys)

    def dispatch(self) -> None:
        """Let the core answer and start what it wants to."""
        released = self._core.release(self.now_ns)
        assert list(released) in ([], self.held_back), 'all of a round at once'
        if released:
            self.held_back = []
        self._answered(released)
        for number, stage, keys in self._core.dispatch(self.now_ns):
            assert number not in self.units
            assert 1 <= len(keys) <= self._max_batch[stage]
            running = {key for _, others in self.units.values() for key in others}
            assert not running & set(keys), 'a request runs in one unit at most'
            assert all(self.stage[key] is Stage(stage) for key in keys), 'stages go in order'
            self.units[number] = Stage(stage), tuple(keys)
            self._held |= set(keys)
        lanes = Counter(stage for stage, _ in self.units.values())
        assert all(lanes[stage] <= self._limits[stage] for stage in Stage)
        if self._narrow:
            assert len(lanes) <= 1, 'one stage at a time'
            assert len(self._held) <= NARROW['max_held'], 'no more than there are states for'

    def finish(self) -> None:
        """Let only time pass and units end, until every request has ended."""
        for _ in range(LAST_TICK):
            self.now_ns += TICK_NS
            for number in sorted(self.units):
                self.end(number)
            self.dispatch()
        assert not self.stage
        assert not self.held_back
        assert self.ended == Counter(range(1, self._last_key + 1))


@pytest.mark.parametrize('narrow', [False, True], ids=['wide', 'narrow'])
@pytest.mark.parametrize('policy', POLICIES)
@pytest.mark.parametrize('make', [native_core, reference_core])
def test_stages_lanes_and_ends_are_kept(make: Make, policy: str, narrow: bool) -> None:
    """
    Stage order, one unit per request, lanes never exceeded, every request ends, once.

    Narrow: units of one stage at a time, and states for three requests only.
    """
    calibration = replace(load_calibration('paper'), batch_work=BATCHES)

    @settings(deadline=None, derandomize=True, max_examples=80 if make is native_core else 12)
    @given(EVENTS)
    def check(events: list[tuple[int, str, int]]) -> None:
        changes = NARROW if narrow else {}
        core = make(calibration, policy_settings(policy, calibration, **changes))
        watch = Watch(core, calibration, policy, narrow=narrow)
        for after_ms, event, number in events:
            watch.now_ns += after_ms * MS
            watch.happens(event, number)
        watch.finish()

    check()
