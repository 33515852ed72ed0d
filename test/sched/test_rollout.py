# SPDX-License-Identifier: Apache-2.0
"""The future played forward, worked out by hand on the sharing device."""

import math
from dataclasses import replace
from typing import Any

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.sched.reference.rollout import Item, Outlook, Playing, Rollout
from xinfer_ros.sched.reference.state import State
from xinfer_ros.sched.settings import ForesightSettings

from .driven_core import sharing_device

SHARPNESS, MARGIN, TARDINESS = 4.0, 2.0, 0.01


def _state() -> State:
    device = sharing_device()
    return State(device, device.bound, ForesightSettings.of(device))


def _rollout(state: State, **changes: Any) -> Rollout:
    settings = replace(
        ForesightSettings.of(state.calibration),
        urgent_ms=90.0,
        horizon_ms=120.0,
        sharpness_ms=SHARPNESS,
        margin_ms=MARGIN,
        tardiness_per_ms=TARDINESS,
    )
    return Rollout(state, replace(settings, **changes))


def _outlook(*due: float, waiting: tuple[int, ...] = (), coming: tuple[int, ...] = ()) -> Outlook:
    """Return items by their due times: some wait for ViT, some come at 50 ms."""
    items = [
        Item(due=at, ready_at=50.0 if i in coming else 0.0, request=None, robot=i)
        for i, at in enumerate(due)
    ]
    return Outlook(
        items=items, waiting=[list(waiting), [], []], coming=list(coming), units=[], counts=[0] * 3
    )


def _price(finish: float, due: float) -> float:
    by = finish + MARGIN - due
    return 1.0 / (1.0 + math.exp(-by / SHARPNESS)) + TARDINESS * max(by, 0.0)


def test_urgent_item_passes_its_stages_at_once() -> None:
    """2 + 4, 1 + 8, 1 + 12 and 3 of output: the end of Action is at 28."""
    rollout = _rollout(_state())
    assert rollout.play(_outlook(80.0, waiting=(0,))) == pytest.approx(_price(31.0, 80.0) + 28e-5)
    assert rollout.late == []


def test_item_that_ends_after_it_is_due_is_late() -> None:
    rollout = _rollout(_state())
    assert rollout.play(_outlook(30.9, waiting=(0,))) == pytest.approx(_price(31.0, 30.9) + 28e-5)
    assert rollout.late == [0]


def test_item_waits_until_it_is_urgent() -> None:
    """Due at 100, urgent from 10 on: 10 ms later than at once."""
    cost = _rollout(_state()).play(_outlook(100.0, waiting=(0,)))
    assert cost == pytest.approx(_price(41.0, 100.0) + 38e-5)


def test_coming_item_starts_when_it_has_come() -> None:
    cost = _rollout(_state()).play(_outlook(80.0, coming=(0,)))
    assert cost == pytest.approx(_price(81.0, 80.0) + 78e-5)


def test_items_side_by_side_slow_each_other() -> None:
    """Both in ViT to 2 + 8, in Prefill to 11 + 16, in Action to 28 + 24, out at 55."""
    rollout = _rollout(_state())
    cost = rollout.play(_outlook(54.0, 56.0, waiting=(0, 1)))
    assert cost == pytest.approx(_price(55.0, 54.0) + _price(55.0, 56.0) + 2 * 52e-5)
    assert rollout.late == [0]


def test_beyond_the_horizon_work_goes_on_under_the_load_of_then() -> None:
    """At 120 nothing runs: 31 more for who was never urgent."""
    cost = _rollout(_state()).play(_outlook(500.0, waiting=(0,)))
    assert cost == pytest.approx(_price(151.0, 500.0))


def test_running_unit_is_played_on() -> None:
    """Begins at 1, has 5 of its Action left: to 6, out at 9."""
    outlook = _outlook(10.0)
    outlook.units.append(Playing(items=[0], stage=Stage.ACTION, begin=1.0, left=5.0))
    outlook.counts[Stage.ACTION] = 1
    assert _rollout(_state()).play(outlook) == pytest.approx(_price(9.0, 10.0) + 6e-5)
    assert outlook.units[0].left == 5.0  # and the outlook stays as it was


def test_play_gives_up_beyond_the_bound() -> None:
    """Of five late items three run at once and end together; the first exceeds the bound."""
    rollout = _rollout(_state())
    whole = rollout.play(_outlook(1.0, 2.0, 3.0, 4.0, 5.0, waiting=(0, 1, 2, 3, 4)))
    assert rollout.late == [0, 1, 2, 3, 4]
    assert rollout.play(_outlook(1.0, 2.0, 3.0, 4.0, 5.0, waiting=(0, 1, 2, 3, 4)), 0.5) > 0.5
    assert len(rollout.late) < 5
    assert whole > 5.0


def test_far_from_late_costs_nothing_at_all() -> None:
    """Its soft step would overflow."""
    assert _rollout(_state()).play(_outlook(60_000.0, waiting=(0,))) == 0.0


def test_unit_takes_along_those_due_next() -> None:
    state = _state()
    state.calibration = replace(state.calibration, batch_work=((1.0, 1.5, 2.0), (1.0,), (1.0,)))
    outlook = _outlook(1.0, 2.0, 3.0, 4.0, 5.0, waiting=(1, 2, 3, 4))
    assert outlook.batch(state, Stage.VIT, 1) == [1, 2, 3]
    assert outlook.batch(state, Stage.VIT, 4) == [1, 2, 4]


def test_item_due_later_changes_its_place_and_nothing_else() -> None:
    outlook = _outlook(1.0, 2.0, 3.0, 4.0, waiting=(0, 3), coming=(2,))
    outlook.units.append(Playing(items=[1], stage=Stage.VIT, begin=0.0, left=1.0))
    later = outlook.with_later(0, 3.5)
    assert [item.robot for item in later.items] == [1, 2, 0, 3]
    assert [item.due for item in later.items] == [2.0, 3.0, 3.5, 4.0]
    assert later.waiting[Stage.VIT] == [2, 3]
    assert later.coming == [1]
    assert later.units[0].items == [0]
    assert [item.robot for item in outlook.items] == [0, 1, 2, 3]
