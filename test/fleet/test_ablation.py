# SPDX-License-Identifier: Apache-2.0
"""What each mechanism gains: variants of switches, and engines asked in turn."""

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.ablation import STEPS, SWITCHES, Variant, ablate, switched


def test_everything_on_is_how_a_server_runs_by_default() -> None:
    config = ServerConfig()
    assert switched(config, '+'.join(SWITCHES)) == config


def test_off_turns_every_mechanism_off() -> None:
    off = switched(ServerConfig(), 'off')
    assert (off.overlap_preparation, off.stage_concurrency, off.stage_overlap) == (False,) * 3
    assert off.round_barrier


@pytest.mark.parametrize('letter', SWITCHES)
def test_each_letter_turns_one_mechanism_on(letter: str) -> None:
    off, one = switched(ServerConfig(), 'off'), switched(ServerConfig(), letter)
    changed = {name for name in off.__slots__ if getattr(off, name) != getattr(one, name)}
    assert changed == {SWITCHES[letter][0]}


def test_unknown_letter_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"switch 'X' of variant 'C\+X'.* C, M, R, G"):
        switched(ServerConfig(), 'C+X')


def test_gain_compares_the_windows_that_were_run_in_turn() -> None:
    base = Variant(name='off', per_s=(10.0, 20.0, 40.0), latency_ms=(1.0, 1.0, 1.0))
    ours = Variant(name='C', per_s=(15.0, 40.0, 44.0), latency_ms=(1.0, 1.0, 1.0))
    assert ours.gain_over(base) == (1.1, 1.5, 2.0)


def test_every_variant_serves_on_a_real_engine() -> None:
    windows: list[int] = []
    variants = ablate(
        ServerConfig(model='echo'),
        STEPS,
        num_robots=3,
        window_s=0.1,
        rounds=1,
        clock=MonotonicClock(),
        done=lambda: windows.append(1),
    )
    assert [variant.name for variant in variants] == list(STEPS)
    assert len(windows) == 8
    for variant in variants:
        assert len(variant.per_s) == 1
        assert variant.per_s[0] > 0
        assert variant.latency_ms[0] <= variant.latency_ms[1] <= variant.latency_ms[2]
