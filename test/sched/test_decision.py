# SPDX-License-Identifier: Apache-2.0
import pytest

from xinfer_ros.sched.decision import Decision, Verdict


@pytest.mark.parametrize(
    ('verdict', 'values', 'says'),
    [
        (Verdict.ISSUED, (-1, 0.0, 0.0, -1.0, -1.0), '12.5 ms: PREFILL of request 7 starts'),
        (
            Verdict.ISSUED_PROTECTED,
            (-1, 0.0, 0.0, -1.0, 3.0),
            '12.5 ms: PREFILL of request 7 starts, protected since 3.0 ms',
        ),
        (
            Verdict.ISSUED_PROTECTED,
            (-1, 0.0, 0.0, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 starts: it is urgent',
        ),
        (
            Verdict.DEFERRED_CURRENT,
            (5, 4.0, 6.0, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits: it would take 6.0 ms of the 4.0 ms of slack of '
            'request 5',
        ),
        (
            Verdict.DEFERRED_CURRENT,
            (5, -4.0, 6.0, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits: request 5 lacks 4.0 ms already',
        ),
        (
            Verdict.DEFERRED_FORECAST,
            (-1, -2.0, 92.0, 20.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits: the request foreseen in 7.5 ms would need '
            '92.0 ms, 2.0 ms more than its budget',
        ),
        (
            Verdict.DEFERRED_GATE,
            (5, 0.0, 0.0, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits behind request 5',
        ),
        (
            Verdict.DEFERRED_ROLLOUT,
            (5, 0.1, 1.2, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits: started now, 1.20 requests are predicted late, '
            'request 5 among them, 0.10 if it waits',
        ),
        (
            Verdict.DEFERRED_BATCH,
            (-1, 7.5, 0.0, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 waits 7.5 ms more for others to fill its batch',
        ),
        (
            Verdict.PUT_OFF,
            (-1, 2.0, 0.5, -1.0, -1.0),
            '12.5 ms: PREFILL of request 7 is put off: that cuts the predicted late requests from '
            '2.00 to 0.50',
        ),
    ],
)
def test_decision_explains_itself(
    verdict: Verdict, values: tuple[int, float, float, float, float], says: str
) -> None:
    assert Decision.of((12.5, 7, 1, int(verdict), *values)).explain() == says
