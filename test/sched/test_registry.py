# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies by name."""

import dataclasses
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.registry import make_core, make_scheduler
from xinfer_ros.sched.settings import POLICIES

from .requests import device, request


@pytest.mark.parametrize('make', [make_core, make_scheduler])
def test_policy_that_is_not_known_is_refused_with_all_that_are(make: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        make('fifi', device())
    assert 'fifi' in str(caught.value)
    assert all(name in str(caught.value) for name in POLICIES)


def test_setting_that_a_policy_does_not_have_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match='has no setting treshold_ms; did you mean threshold_ms'):
        make_core('slack_gate', device(), treshold_ms=20.0)


def test_implementation_that_is_not_known_is_refused_with_those_that_are() -> None:
    wrong: Any = 'fast'
    with pytest.raises(ConfigError, match='fast is not known; known: native, reference'):
        make_core('fifo', device(), implementation=wrong)


@pytest.mark.parametrize('name', sorted(POLICIES))
def test_every_policy_leaves_an_empty_server_alone(name: str) -> None:
    scheduler = make_scheduler(name, device())
    assert scheduler.dispatch(0) == []
    assert not scheduler.waits


@pytest.mark.parametrize('name', sorted(POLICIES))
def test_every_policy_starts_a_single_request_at_once(name: str) -> None:
    changes = {'wait_ms': 0.0} if name == 'dynamic_batch' else {}  # it would wait for others
    scheduler = make_scheduler(name, device(), **changes)
    scheduler.submit(request(1), 0)
    (unit,) = scheduler.dispatch(0)
    assert unit.stage is Stage.VIT


def test_settings_offer_exactly_the_policies_that_exist() -> None:
    setting = next(f for f in dataclasses.fields(ServerConfig) if f.name == 'scheduling_policy')
    assert set(setting.metadata['choices']) == set(POLICIES)


def test_schedulers_do_not_share_a_state() -> None:
    first, second = (make_scheduler('fifo', device()) for _ in range(2))
    first.submit(request(1), 0)
    assert second.dispatch(0) == []
