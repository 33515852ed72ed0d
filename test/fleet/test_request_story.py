# SPDX-License-Identifier: Apache-2.0
"""The life of a request is told in sentences, and late ones with their chief cause."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.late_requests import late_requests, late_table
from xinfer_ros.fleet.request_account import RequestAccount
from xinfer_ros.fleet.request_story import request_story, verdict
from xinfer_ros.fleet.run_events import Ended, LoggedRequest, Outcome
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.log_files import DecisionLog

from .logged_rounds import logged_round

MS = 1_000_000


@pytest.fixture(scope='module')
def crowded(tmp_path_factory: pytest.TempPathFactory) -> DecisionLog:
    """Return the log of more robots than the device can serve."""
    return logged_round(tmp_path_factory.mktemp('log'), 'xinfer', robots=22)


def test_late_requests_are_listed_with_where_their_time_went(crowded: DecisionLog) -> None:
    found = late_requests(crowded)
    assert 10 < len(found.late) < found.ended
    for late in found.late:
        assert late.late_ms > 0
        assert 0 <= late.deferred_ms <= late.waited_ms + 1e-6
    one = found.late[-1]
    of_robot = late_requests(crowded, one.robot)
    assert {late.robot for late in of_robot.late} == {one.robot}
    assert of_robot.late[-1] == one
    table = late_table(found, 5)
    assert len(table.rows) == 5
    assert table.title == (
        f'{len(found.late)} of {found.ended} requests were late; the newest 5 of them'
    )
    with pytest.raises(ConfigError, match='the log has no robot arm; it has robot_0, robot_1'):
        late_requests(crowded, 'arm')


def test_life_of_a_late_request_is_told_from_arrival_to_verdict(crowded: DecisionLog) -> None:
    late = max(late_requests(crowded).late, key=lambda late: late.deferred_ms)
    lines = request_story(crowded, late.key)
    text = '\n'.join(lines)
    assert lines[0].startswith(f'request {late.key} of {late.robot}, {late.after_s:.3f} s into')
    assert 'its inputs are ready: slack ' in lines[1]
    for stage in Stage:
        assert f'{stage.name} starts' in text
        assert f'{stage.name} ends after ' in text
    assert ' waits: ' in text
    assert f'Late, by {late.late_ms:.1f} ms, chiefly because {late.why}.' in lines
    assert f'Of the waiting, {late.deferred_ms:.1f} ms were by decision of the policy.' in lines


def test_request_in_time_and_unknown_one(crowded: DecisionLog) -> None:
    late = {late.key for late in late_requests(crowded).late}
    good = next(key for key in range(1, 100) if key not in late)
    assert any(line.startswith('On time: ') for line in request_story(crowded, good))
    with pytest.raises(ConfigError, match=r'does not tell of a request 99999; it knows 1 to \d+'):
        request_story(crowded, 99999)


def _account(slack_ms: float = 5.0, outcome: Outcome = Outcome.ANSWERED) -> RequestAccount:
    request = LoggedRequest(
        key=1, robot=0, arrival_ns=0, budget_ns=100 * MS, deadline_ns=96 * MS, ready_ns=0
    )
    end = Ended(at_ns=120 * MS, request=request, outcome=outcome)
    return RequestAccount(request=request, submitted_ns=8 * MS, slack_ms=slack_ms, end=end)


def test_chief_cause_is_the_largest_part_that_need_not_have_been() -> None:
    account = _account()
    account.waited_ns[Stage.VIT] = 30 * MS
    assert account.cause() == 'it waited 30.0 ms for a lane or its turn'
    account.deferred_ns[Verdict.DEFERRED_FORECAST] = 20 * MS
    assert account.cause() == 'it waited 20.0 ms for a request foreseen'
    account.longer_ns = 25 * MS
    assert account.cause() == 'its units took 25.0 ms longer than predicted'
    assert _account(-3.0).cause() == (
        'it lacked 3.0 ms already as it was submitted, after 8.0 ms of preparation'
    )


def test_verdict_says_whether_there_was_an_answer() -> None:
    expired = next(verdict(_account(outcome=Outcome.EXPIRED)))
    assert expired.startswith('Without an answer (expired: its robot had given it up), by 24.0 ms')
    superseded = next(verdict(_account(outcome=Outcome.SUPERSEDED)))
    assert superseded == 'Without an answer: superseded by a newer one of its robot.'
