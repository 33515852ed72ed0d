# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies by name."""

import dataclasses

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.registry import POLICIES, make_policy

from .requests import view


def test_policy_that_is_not_known_is_refused_with_all_that_are() -> None:
    with pytest.raises(ConfigError) as caught:
        make_policy('fifi')
    assert 'fifi' in str(caught.value)
    assert all(name in str(caught.value) for name in POLICIES)


@pytest.mark.parametrize('name', sorted(POLICIES))
def test_every_policy_leaves_an_empty_server_alone(name: str) -> None:
    assert make_policy(name).choose(view({}), 0) is None


def test_settings_offer_exactly_the_policies_that_exist() -> None:
    setting = next(f for f in dataclasses.fields(ServerConfig) if f.name == 'scheduling_policy')
    assert set(setting.metadata['choices']) == set(POLICIES)


def test_engines_do_not_share_a_policy() -> None:
    assert make_policy('fifo') is not make_policy('fifo')
