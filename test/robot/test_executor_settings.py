# SPDX-License-Identifier: Apache-2.0
"""What a node's settings make of an executor, and which of them do not fit together."""

import re

import pytest

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.execution_mode import ExecutionMode
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.merge_rule import Replacement, TemporalEnsemble
from xinfer_ros.setting import settings_from

MS = 1_000_000
JOINTS = ('elbow', 'gripper')


def _settings(**settings_of_node: object) -> ExecutorSettings:
    config = ExecutorConfig(**settings_of_node)  # type: ignore[arg-type]
    return ExecutorSettings.from_config(config, 'r0', JOINTS)


def test_seconds_become_whole_nanoseconds() -> None:
    settings = _settings(
        keyframe_spacing_s=1 / 30, minimum_period_s=0.2, refusal_backoff_s=0.3,
        response_budget_s=0.07, tight_budget_s=0.05,
    )  # fmt: skip
    assert settings.keyframe_spacing_ns == 33_333_333
    assert settings.minimum_period_ns == 200 * MS
    assert settings.backoff_ns == 300 * MS
    assert (settings.budget_ns, settings.tight_budget_ns) == (70 * MS, 50 * MS)


def test_a_measured_commitment_has_the_margin_and_the_bounds_of_the_settings() -> None:
    estimator = _settings(
        commitment_steps=30, commitment_margin_steps=2, min_commitment_steps=4,
        max_commitment_steps=9,
    ).commitment_estimator()  # fmt: skip
    assert estimator is not None
    assert estimator.steps(60_000 * MS, None) == 9
    for response_ms in (700, 10, 200):
        estimator.add(response_ms * MS)
    assert estimator.steps(60_000 * MS, None) == 9  # 7 rows of 30 ms and 2
    for _ in range(20):
        estimator.add(10 * MS)
    assert estimator.steps(60_000 * MS, None) == 4
    assert _settings(commitment='fixed').commitment_estimator() is None


def test_a_mode_brings_its_merge_rule() -> None:
    for mode in ExecutionMode:
        rule = _settings(execution_mode=mode.value).merge_rule()
        blends = mode is ExecutionMode.ENSEMBLE
        assert isinstance(rule, TemporalEnsemble if blends else Replacement)


def test_switching_joints_are_those_that_the_patterns_name() -> None:
    settings = _settings(command_interface='velocity')
    assert settings.discrete_joints == ('gripper',)
    assert settings.discrete.tolist() == [False, True]
    assert settings.rows_are_velocities
    assert not _settings().rows_are_velocities


@pytest.mark.parametrize(
    ('settings', 'found'),
    [
        ({'chunk_timeout_s': 0.18}, 'chunks are 0.18 s apart in mode rtc: give a longer '
         'time, or 0'),
        ({'chunk_timeout_s': 0.3, 'horizon_adaptation': True}, 'chunks are 0.36 s apart'),
        ({'chunk_timeout_s': 30.0, 'execution_mode': 'sync'}, 'chunks are a whole chunk '
         'apart in mode sync: give 0'),
        ({'horizon_adaptation': True, 'minimum_period_s': 0.5}, 'minimum_period_s is 0.5; with'),
        ({'budget_sources': ('griper',)}, "budget_sources has 'griper'; allowed: gripper"),
        ({'budget_sources': ('contact',)}, 'budget_sources has contact; give contact_efforts'),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_together_stop_the_start(
    settings: dict[str, object], found: str
) -> None:
    """A robot that times out between two chunks holds; a synchronous one would never ask again."""
    with pytest.raises(ConfigError, match=re.escape(found)):
        ExecutorConfig(**settings)  # type: ignore[arg-type]


def test_settings_that_fit_together_are_taken() -> None:
    ExecutorConfig(chunk_timeout_s=0.2)
    ExecutorConfig(execution_mode='sync')
    ExecutorConfig(horizon_adaptation=True, chunk_timeout_s=0.4)
    ExecutorConfig(longest_period_s=9.0, chunk_timeout_s=0.4)


def test_contact_that_can_never_end_stops_the_start() -> None:
    """No effort is less than nothing."""
    with pytest.raises(ConfigError, match=r'contact_release is 0.0 .*allowed: .* from 0.01 to 1'):
        settings_from(ExecutorConfig, {'contact_release': 0.0}, {})
