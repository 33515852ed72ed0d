# SPDX-License-Identifier: Apache-2.0
"""The budget sources that settings choose."""

import pytest

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.budgets.registry import sources_from_config
from xinfer_ros.robot.budgets.tightest import TightestBudget
from xinfer_ros.robot.limits import RowLimits

from .situations import JOINTS, MS, rows_of, situation


def _chosen(**settings: object) -> TightestBudget:
    config = ExecutorConfig(**settings)  # type: ignore[arg-type]
    return TightestBudget(sources_from_config(config, JOINTS), 180 * MS)


ALL: dict[str, object] = {
    'budget_sources': ('motion', 'contact', 'gripper'),
    'contact_efforts': ('elbow=10',),
}
CALM = rows_of(elbow=[0.0] * 80)
CLOSING = rows_of(gripper=[0.0] * 20 + [1.0] * 40)


def test_settings_choose_the_sources_and_their_order() -> None:
    chosen = _chosen(**ALL)
    for planned, effort, reason in (
        (CALM, 0, 'motion: slow'),  # all are wide
        (CALM, 11, 'contact: elbow at effort 11'),
        (CLOSING, 0, 'gripper: gripper switches in 0.42 s'),
        (rows_of(elbow=[0, 1, 2]), 11, 'motion: elbow moves at 50/s'),  # two are tight
    ):
        context = situation(planned=planned, effort=(effort, 0, 0))
        assert chosen.wish(context).reason == reason


def test_settings_say_when_and_how_tight() -> None:
    chosen = _chosen(
        budget_sources=('gripper',), gripper_before_s=0.2, tight_budget_s=0.05, wide_budget_s=0.3
    )
    assert chosen.wish(situation(planned=CLOSING)).budget_ns == 300 * MS
    assert chosen.wish(situation(planned=CLOSING[12:])).budget_ns == 50 * MS


@pytest.mark.parametrize('limit', ['gripper=0:10', 'gripper=-9:1'])
def test_gripper_range_is_that_of_the_limits(limit: str) -> None:
    config = ExecutorConfig(budget_sources=('gripper',), position_limits=(limit,))
    limits = RowLimits.from_config(config, JOINTS, None)
    (source,) = sources_from_config(config, JOINTS, limits)
    wish = source.wish(situation(planned=CLOSING))
    assert wish is not None
    assert wish.reason == 'gripper: no switch near'


def test_no_sources_are_made_unless_they_are_chosen() -> None:
    assert sources_from_config(ExecutorConfig(), JOINTS) == ()


@pytest.mark.parametrize(
    ('settings', 'found'),
    [
        ({'budget_sources': ('gripper',), 'discrete_joints': ('hand',)}, 'names none of elbow'),
        ({'budget_sources': ('motion',), 'discrete_joints': ('*',)}, 'leaves no joint to watch'),
        ({**ALL, 'contact_efforts': ('hand=1',)}, "no joint matches 'hand'"),
        ({**ALL, 'contact_efforts': ('elbow=-1',)}, 'gives elbow -1; more than 0 is needed'),
    ],
)
def test_source_without_a_joint_to_watch_stops_the_start(
    settings: dict[str, object], found: str
) -> None:
    with pytest.raises(ConfigError, match=found):
        _chosen(**settings)


def test_tight_budget_wider_than_the_wide_one_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r'tight_budget_s is 0.5; at most wide_budget_s, 0.4'):
        ExecutorConfig(budget_sources=('motion',), tight_budget_s=0.5)
