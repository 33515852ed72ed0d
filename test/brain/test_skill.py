# SPDX-License-Identifier: Apache-2.0
"""When a skill is over."""

import pytest

from xinfer_ros.brain.skill import RobotTask, Skill, SkillEnd, SkillWish
from xinfer_ros.core.metrics import RobotReport

S = 1_000_000_000


def _skill(*, until_still: bool = False, max_steps: int | None = None) -> Skill:
    wish = SkillWish(task='pick', until_still=until_still, timeout_ns=30 * S, max_steps=max_steps)
    return Skill(wish, 0)


def _report(steps: int, motion: float = 0.5, starved: int = 0) -> RobotReport:
    return RobotReport(executed_steps=steps, motion=motion, starved_ticks=starved)


def _lived(skill: Skill, seconds: int, motion: float = 0.5) -> None:
    for half in range(2 * seconds):
        skill.reported(_report(100 + 15 * half, motion), half * S // 2)


def test_a_skill_lasts_until_its_time_is_over() -> None:
    skill = _skill()
    _lived(skill, 30)
    assert skill.judge('pick', 29 * S) is None
    assert skill.judge('pick', 30 * S) is SkillEnd.TIMEOUT
    assert skill.progress(30 * S).steps == 59 * 15


def test_a_skill_ends_with_its_steps() -> None:
    skill = _skill(max_steps=45)
    skill.reported(_report(1000, starved=3), S // 2)
    skill.reported(_report(1044, starved=5), S)
    assert skill.judge('pick', S) is None
    skill.reported(_report(1045, starved=5), 3 * S // 2)
    assert skill.judge('pick', 3 * S // 2) is SkillEnd.DONE
    assert skill.progress(2 * S).starved_ticks == 2


def test_a_skill_until_still_ends_when_the_robot_stops_after_it_has_moved() -> None:
    skill = _skill(until_still=True)
    skill.reported(_report(0, motion=0.0), 0)
    skill.reported(_report(1, motion=0.0), 19 * S // 10)
    assert skill.judge('pick', 19 * S // 10) is None
    skill.reported(_report(20), 3 * S)
    skill.reported(_report(30, motion=0.001), 4 * S)
    assert skill.judge('pick', 5 * S) is None
    skill.reported(_report(40, motion=0.001), 55 * S // 10)
    assert skill.judge('pick', 55 * S // 10) is SkillEnd.DONE


def test_a_robot_that_is_made_to_hold_does_not_stand_still_by_itself() -> None:
    """Its server is down, or its brain waits: the skill is not done."""
    skill = _skill(until_still=True)
    _lived(skill, 3)
    for half in range(6, 14):
        skill.reported(_report(175, motion=0.0), half * S // 2)
    assert skill.judge('pick', 7 * S) is None
    for half in range(14, 20):
        skill.reported(_report(40 * half, motion=0.0), half * S // 2)
    assert skill.judge('pick', 19 * S // 2) is SkillEnd.DONE


def test_another_task_takes_over() -> None:
    assert _skill().judge('put it down', S) is SkillEnd.REPLACED


def test_what_we_said_ourselves_takes_nothing_over_however_late_it_is_heard() -> None:
    task = RobotTask()
    for name in ('one', 'two', 'three'):
        task.given(name)
    assert not task.heard('one')
    assert task.name == 'three'
    assert not task.heard('three')  # 'two' was lost on its way
    assert not task.heard('three')  # somebody says the same
    assert task.heard('two')
    assert task.name == 'two'


def test_an_executor_that_is_not_heard_ends_it() -> None:
    skill = _skill()
    assert skill.judge('pick', 19 * S // 10) is None
    assert skill.judge('pick', 2 * S) is SkillEnd.SILENT


def test_an_executor_that_starts_anew_is_counted_on() -> None:
    skill = _skill()
    skill.reported(_report(500), S)
    skill.reported(_report(520), S)
    skill.reported(_report(0), 2 * S)
    skill.reported(_report(30), 3 * S)
    assert skill.progress(3 * S).steps == 50


@pytest.mark.parametrize('end', SkillEnd)
def test_every_end_has_its_words(end: SkillEnd) -> None:
    assert end.words
