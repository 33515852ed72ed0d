# SPDX-License-Identifier: Apache-2.0
"""A device divided between Context and Action."""

import numpy as np
import pytest

from xinfer_ros.predict.calibration import load_calibration, shipped_names
from xinfer_ros.sched.partition import best_share, divided, group_ms, round_times
from xinfer_ros.sched.settings import policy_settings

from .driven_core import sharing_device


def test_unit_of_one_part_does_not_feel_the_other() -> None:
    rates = divided(load_calibration('paper').rates, 0.5)
    for action in range(rates.shape[3]):
        np.testing.assert_array_equal(rates[0][:, :, action], rates[0][:, :, 0])
    for vit in range(rates.shape[1]):
        np.testing.assert_array_equal(rates[2][vit], rates[2][0])


def test_part_gives_no_more_than_its_share_of_the_whole() -> None:
    """All units together of a stage get 1 on this device, whatever runs."""
    rates = divided(sharing_device().rates, 0.25)
    assert rates[0, 0, 0, 0] == 0.25
    assert rates[0, 1, 1, 0] == pytest.approx(0.25 / 3)
    assert rates[2, 3, 3, 0] == 0.75


def test_larger_share_never_slows_its_part() -> None:
    whole = load_calibration('soft').rates
    small, large = divided(whole, 0.3), divided(whole, 0.6)
    assert (large[:2] >= small[:2]).all()
    assert (large[2] <= small[2]).all()
    assert (small <= whole.max()).all()


@pytest.mark.parametrize('name', shipped_names())
def test_best_share_has_the_shortest_round_of_the_table(name: str) -> None:
    calibration = load_calibration(name)
    group = policy_settings('robion', calibration).group
    times = round_times(calibration, group)
    best = next(time for time in times if time.share == best_share(calibration, group))
    assert best.round_ms == min(time.round_ms for time in times)
    assert best.round_ms == max(best.context_ms, best.action_ms)


def test_capacity_is_what_the_policy_can_give() -> None:
    """Robots are admitted by it: a policy that uses the device badly serves fewer of them."""
    device = load_calibration('paper')
    capacity = {
        policy: policy_settings(policy, device).capacity_per_ms(device)
        for policy in ('fifo', 'serial', 'dynamic_batch', 'robion', 'lookahead')
    }
    alone_ms = device.alone_ms - device.output_ms  # its output takes no lane
    assert capacity['serial'] == pytest.approx(1.0 / alone_ms)
    assert capacity['serial'] < capacity['dynamic_batch'] == capacity['lookahead']
    assert capacity['dynamic_batch'] < capacity['fifo']
    assert 0.0 < capacity['robion'] < capacity['fifo']


def test_group_takes_its_lane_in_turns() -> None:
    """Alone a ViT unit takes 2 + 4 ms, three at once 2 + 12."""
    device = sharing_device()
    assert group_ms(device, 0, 1) == pytest.approx(6.0)
    assert group_ms(device, 0, 3) == pytest.approx(14.0)
    assert group_ms(device, 0, 4) == pytest.approx(20.0)
