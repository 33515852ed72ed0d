# SPDX-License-Identifier: Apache-2.0
"""First in, first out."""

from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.fifo import Fifo

from .requests import request, view

ready_work = st.dictionaries(
    st.sampled_from(Stage), st.lists(st.integers(1, 50), unique=True, max_size=6)
)
free_lanes = st.fixed_dictionaries({stage: st.integers(0, 2) for stage in Stage})


def test_nothing_ready_means_nothing_to_do() -> None:
    assert Fifo().choose(view({}), 0) is None


def test_ready_work_waits_for_its_lane() -> None:
    waiting = {Stage.PREFILL: [request(1)]}
    assert Fifo().choose(view(waiting, {Stage.PREFILL: 0}), 0) is None


def test_oldest_request_comes_first_although_it_became_ready_last() -> None:
    work = Fifo().choose(view({Stage.VIT: [request(5), request(9), request(2)]}), 0)
    assert work is not None
    assert [r.key for r in work.requests] == [2]


def test_later_stages_come_first() -> None:
    ready = {Stage.VIT: [request(1)], Stage.PREFILL: [request(2)], Stage.ACTION: [request(3)]}
    work = Fifo().choose(view(ready), 0)
    assert work is not None
    assert work.stage is Stage.ACTION


def test_deadlines_are_ignored() -> None:
    urgent, patient = request(2, budget_ns=1), request(1, budget_ns=10**12)
    work = Fifo().choose(view({Stage.VIT: [urgent, patient]}), 10**9)
    assert work is not None
    assert work.requests == (patient,)


@settings(deadline=None, derandomize=True)
@given(ready_work, free_lanes)
def test_choice_is_the_oldest_of_a_lane_that_is_free(
    keys: dict[Stage, list[int]], free: dict[Stage, int]
) -> None:
    ready = {stage: [request(key) for key in numbers] for stage, numbers in keys.items()}
    work = Fifo().choose(view(ready, free), 0)
    startable = [stage for stage in Stage if ready.get(stage) and free[stage]]
    if work is None:
        assert not startable
    else:
        assert work.stage is max(startable)
        assert [r.key for r in work.requests] == [min(keys[work.stage])]
