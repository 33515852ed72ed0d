# SPDX-License-Identifier: Apache-2.0
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.world import World


@pytest.mark.parametrize('name', ['tick_ms', 'slowdown', 'work_sd', 'network_ms'])
def test_world_refuses_a_negative_number(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        World(**{name: -1.0})


def test_world_refuses_a_tick_that_never_ends() -> None:
    with pytest.raises(ConfigError, match='tick_ms'):
        World(tick_ms=0.0)


@pytest.mark.parametrize('name', ['pacing_step_ms', 'horizon_ms', 'sharpness_ms'])
def test_policy_refuses_a_step_that_never_ends(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        policy_settings('foresight', load_calibration('paper'), **{name: 0.0})


def test_true_rates_differ_from_the_table_by_a_fixed_field() -> None:
    calibration = load_calibration('paper')
    rates = World().true_rates(calibration)
    assert (rates == World().true_rates(calibration)).all()
    assert (rates != World(mismatch_seed=2).true_rates(calibration)).any()
    assert (World(mismatch_sd=0.0).true_rates(calibration) == calibration.rates).all()


def test_slow_device_is_slower_everywhere() -> None:
    calibration = load_calibration('paper')
    slow = World(slowdown=1.1).true_rates(calibration)
    assert slow == pytest.approx(World().true_rates(calibration) / 1.1)
