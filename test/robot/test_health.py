# SPDX-License-Identifier: Apache-2.0
"""How a robot is, in one line."""

from collections import Counter
from typing import Any

import pytest

from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason
from xinfer_ros.robot.health import Health

S = 1_000_000_000


def _running(**changes: Any) -> RobotReport:
    return RobotReport(**{'phase': ExecutorPhase.RUNNING, 'motion': 1.0, **changes})


def _judge(health: Health, report: RobotReport, now_ns: int = 0, **changes: Any) -> Verdict:
    return health.judge(
        report, now_ns, **{'notice': '', 'refusal': '', 'stalled_ns': 0, **changes}
    )


def test_model_without_motion_is_told_apart_from_a_missing_chunk() -> None:
    """Also seen (dot_policy 4)."""
    health = Health()
    still = _running(motion=0.001)
    assert _judge(health, still, 0).level is Level.OK
    assert _judge(health, still, 2 * S).level is Level.OK
    verdict = _judge(health, still, 2 * S + 1)
    assert verdict == Verdict(level=Level.WARN, text='the model outputs no motion')
    holding = RobotReport(phase=ExecutorPhase.HOLDING, hold='no chunk', motion=0.001)
    assert _judge(health, holding, 5 * S) == Verdict(level=Level.WARN, text='no chunk')
    assert _judge(health, still, 6 * S).level is Level.OK  # it counts from here again
    assert _judge(health, _running(), 9 * S).level is Level.OK


def test_missing_chunk_is_told_with_the_last_reason_until_one_comes() -> None:
    health = Health()
    refused = RobotReport(
        phase=ExecutorPhase.HOLDING, hold='no chunk', reasons=Counter({Reason.EXPIRED: 1})
    )
    assert _judge(health, refused, refusal='too late').text == 'no chunk: EXPIRED: too late'
    assert _judge(health, refused, refusal='too late').text == 'no chunk: EXPIRED: too late'
    came = _running(chunks=1, reasons=Counter({Reason.EXPIRED: 1}))
    assert _judge(health, came).text == 'RUNNING'
    again = RobotReport(phase=ExecutorPhase.HOLDING, hold='no chunk', chunks=1)
    assert _judge(health, again).text == 'no chunk'


def test_limits_that_a_chunk_breaks_are_told_though_rows_are_played() -> None:
    health = Health()
    report = _running(reasons=Counter({Reason.REJECTED_LIMITS: 3}))
    verdict = _judge(health, report, refusal='row 3 has 4 for elbow')
    assert verdict == Verdict(level=Level.WARN, text='REJECTED_LIMITS: row 3 has 4 for elbow')
    assert _judge(health, report).level is Level.OK


@pytest.mark.parametrize(
    ('report', 'changes', 'expected'),
    [
        (_running(), {'stalled_ns': S}, (Level.ERROR, 'the control thread stalls, 1.00 s late')),
        (RobotReport(phase=ExecutorPhase.STOPPED), {}, (Level.OK, 'inactive')),
        (_running(), {'notice': 'no server'}, (Level.WARN, 'no server')),
        (_running(ticks=20, overruns=2), {}, (Level.WARN, '2 control ticks were missed')),
        (_running(ticks=20, overruns=1), {}, (Level.OK, 'RUNNING')),
        (RobotReport(), {}, (Level.WARN, 'REGISTERING')),
    ],
)
def test_worst_trouble_is_told_first(
    report: RobotReport, changes: dict[str, Any], expected: tuple[Level, str]
) -> None:
    verdict = _judge(Health(), report, **changes)
    assert verdict.level is expected[0]
    assert verdict.text.startswith(expected[1])
