# SPDX-License-Identifier: Apache-2.0
"""The comparison of execution modes on one recorded motion."""

import numpy as np
import pytest

from xinfer_ros.config import MAX_BUDGET_S, ExecutorConfig
from xinfer_ros.episodes.episode import Episode, Series
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.modes import ModeRecord, ModesPlan, Motion, compare_modes
from xinfer_ros.robot.execution_mode import ExecutionMode

DELAY_MS = 240
JOINTS = ('waist', 'elbow', 'gripper')


def _series(rows: int) -> Series:
    times_ns = np.arange(rows, dtype=np.int64) * 30_000_000
    seconds = times_ns / 1e9
    values = np.column_stack([0.3 * np.sin(seconds), 0.3 * np.cos(seconds), seconds > 2.0])
    return Series(times_ns=times_ns, values=values)


def _plan(**changes: object) -> ModesPlan:
    episode = Episode(name='waves', joints=JOINTS, states=_series(150), commands=_series(150))
    values: dict[str, object] = {
        'motions': (Motion.of(episode),),
        'modes': tuple(ExecutionMode),
        'delays_ms': (DELAY_MS,),
        'seeds': (1, 2),
        'spread': 0.2,
        'deviation': 0.05,
        'horizon': 50,
        'config': ExecutorConfig(response_budget_s=MAX_BUDGET_S),
    }
    return ModesPlan(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope='module')
def records() -> dict[str, ModeRecord]:
    """Return the records of all modes at one delay."""
    found = compare_modes(_plan(), lambda: None)
    return {record.mode: record for record in found}


def test_seams_of_rtc_are_smoother_than_those_of_async(records: dict[str, ModeRecord]) -> None:
    assert records['rtc'].jump_max < 0.5 * records['async'].jump_max
    assert records['rtc'].step_max < 0.5 * records['async'].step_max


def test_only_sync_starves_and_takes_longer(records: dict[str, ModeRecord]) -> None:
    starved = {mode for mode, record in records.items() if record.starved > 0.0}
    assert starved == {'sync'}
    assert max(records.values(), key=lambda each: each.completion_s).mode == 'sync'


def test_only_rtc_freezes(records: dict[str, ModeRecord]) -> None:
    frozen = {mode for mode, record in records.items() if record.overfrozen > 0.0}
    assert frozen == {'rtc'}


def test_mean_of_many_chunks_tracks_best(records: dict[str, ModeRecord]) -> None:
    assert min(records.values(), key=lambda each: each.tracking_rms).mode == 'ensemble'


def test_same_plan_gives_the_same_records_and_tells_of_each_run() -> None:
    plan, told = _plan(modes=(ExecutionMode.RTC,)), []
    first = compare_modes(plan, lambda: told.append(1))
    assert compare_modes(plan, lambda: None) == first
    assert len(told) == plan.num_runs == first[0].runs == 2


def test_motion_is_sampled_at_the_rate_of_the_commands() -> None:
    motion = Motion.of(Episode(name='waves', joints=JOINTS, commands=_series(150)))
    assert (motion.spacing_ns, motion.rows.shape) == (30_000_000, (150, 3))
    assert motion.discrete_joints == ('gripper',)
    assert motion.largest_step == pytest.approx(0.3 * 0.03, rel=0.01)


def test_episode_without_commands_is_refused() -> None:
    with pytest.raises(ConfigError, match='episode still has no joint commands'):
        Motion.of(Episode(name='still', joints=JOINTS, states=_series(10)))


def test_episode_with_a_joint_that_is_not_told_is_refused() -> None:
    told = _series(10)
    told.values[0, 1] = np.nan
    with pytest.raises(ConfigError, match='not every joint is told'):
        Motion.of(Episode(name='gap', joints=JOINTS, commands=told))


def test_delay_that_leaves_a_robot_waiting_most_of_the_time_is_refused() -> None:
    plan = _plan(modes=(ExecutionMode.RTC,), delays_ms=(10_000,), seeds=(1,))
    with pytest.raises(ConfigError, match='rtc at 10000 ms has not ended'):
        compare_modes(plan, lambda: None)
