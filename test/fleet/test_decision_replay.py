# SPDX-License-Identifier: Apache-2.0
"""A simulated round is decided again as its log says, and another scheduler is found out."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.decision_replay import check_agreement
from xinfer_ros.fleet.decision_report import call_line
from xinfer_ros.fleet.run_story import run_events
from xinfer_ros.sched.journal import CallKind
from xinfer_ros.sched.log_files import DecisionLog
from xinfer_ros.sched.settings import POLICIES

from .logged_rounds import logged_round


@pytest.mark.parametrize('policy', POLICIES)
def test_every_policy_decides_its_round_again(policy: str, tmp_path: Path) -> None:
    found = check_agreement(logged_round(tmp_path, policy, robots=12))
    assert found.difference is None
    assert found.units > 300
    assert 2.8 < found.seconds < 4.0


def _with_settings(log: DecisionLog, **changes: object) -> DecisionLog:
    (part,) = log.parts
    header = replace(part.header, settings={**part.header.settings, **changes})
    return replace(log, parts=(replace(part, header=header),))


def test_first_difference_is_told_with_the_calls_before_it(tmp_path: Path) -> None:
    log = _with_settings(logged_round(tmp_path, 'slack_gate'), threshold_ms=0.0)
    difference = check_agreement(log).difference
    assert difference is not None
    assert difference.step is not None
    assert difference.step.call.kind is CallKind.DISPATCH
    assert 0 < difference.after_ns < 3e9
    assert len(difference.before) == 12
    logged, now = (call_line(call) for call in (difference.step.call, difference.step.answered))
    assert 'dispatch() starts nothing' in logged
    assert 'dispatch() starts unit ' in now
    with pytest.raises(ConfigError, match='xinfer replay-decisions tells where'):
        list(run_events(log))


def test_state_that_is_not_where_the_part_before_ends_is_a_difference(tmp_path: Path) -> None:
    (part,) = logged_round(tmp_path, 'fifo').parts
    second = replace(part, header=replace(part.header, part=2))
    found = check_agreement(DecisionLog(parts=(part, second)))
    assert found.difference is not None
    assert (found.difference.part, found.difference.step) == (2, None)


def test_state_of_another_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    log = logged_round(tmp_path, 'fifo')
    other = replace(log.parts[0], state=b'\xff' + log.parts[0].state[1:])
    with pytest.raises(ConfigError, match=r'part 1 cannot be run again: .*; the version of'):
        check_agreement(replace(log, parts=(other,)))


def test_calls_are_told_in_words(tmp_path: Path) -> None:
    log = logged_round(tmp_path, 'foresight', robots=4)
    first = {call.kind: call_line(call) for call in reversed(list(log.parts[0].calls()))}
    assert 'submit(key 1, robot ' in first[CallKind.SUBMIT]
    assert ', budget ' in first[CallKind.SUBMIT]
    assert first[CallKind.COMPLETE].endswith('complete(number 1) ends no request')
    assert first[CallKind.PACE].split('): ')[1].endswith(' ms')
