# SPDX-License-Identifier: Apache-2.0
"""What a websocket robot may say beyond openpi's protocol."""

from typing import Any

import numpy as np
import pytest

from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.wishes import Wishes, wishes


def test_nothing_needs_to_be_said() -> None:
    assert wishes({'state': 1}) == wishes({'xinfer': {}}) == Wishes()


def test_everything_can_be_said() -> None:
    rows = [[1.0, 2.0], [3, 4]]
    wish = wishes(
        {
            'xinfer': {
                'robot_id': 'r1', 'budget_s': 0.2, 'period_s': 1, 'spacing_s': 0.02,
                'executed_steps': 7, 'commitment_steps': 1, 'leftover': rows, 'episode': 3,
            }
        }
    )  # fmt: skip
    assert (wish.robot_id, wish.budget_s, wish.period_s, wish.spacing_s) == ('r1', 0.2, 1.0, 0.02)
    assert (wish.executed_steps, wish.commitment_steps, wish.episode) == (7, 1, 3)
    assert wish.leftover is not None
    assert wish.leftover.dtype == np.float32
    np.testing.assert_array_equal(wish.leftover, rows)
    same = wishes({'xinfer': {'leftover': np.array(rows)}}).leftover
    np.testing.assert_array_equal(same, wish.leftover)


@pytest.mark.parametrize(
    ('said', 'reason', 'words'),
    [
        ('r1', Reason.REJECTED_STATE, 'xinfer: expected a dictionary; received str'),
        ({'robotid': 'r1'}, Reason.REJECTED_STATE, 'did you mean robot_id?'),
        ({'robot_id': 5}, Reason.REJECTED_NAME, 'xinfer/robot_id: expected text; received 5'),
        ({'budget_s': 0}, Reason.REJECTED_BUDGET, 'expected seconds, above 0; received 0'),
        ({'budget_s': float('nan')}, Reason.REJECTED_BUDGET, 'received nan'),
        ({'budget_s': float('inf')}, Reason.REJECTED_BUDGET, 'received inf'),
        ({'budget_s': True}, Reason.REJECTED_BUDGET, 'received True'),
        ({'period_s': 'x'}, Reason.REJECTED_PERIOD, 'received str'),
        ({'spacing_s': -1}, Reason.REJECTED_SPACING, 'received -1'),
        ({'executed_steps': -1}, Reason.REJECTED_ORDER, 'a whole number from 0'),
        ({'executed_steps': 2**40}, Reason.REJECTED_ORDER, 'a whole number from 0'),
        ({'commitment_steps': 1.5}, Reason.REJECTED_COMMITMENT, 'received 1.5'),
        ({'episode': None}, Reason.REJECTED_ORDER, 'received NoneType'),
        ({'leftover': [1.0]}, Reason.REJECTED_LEFTOVER, 'numbers of shape (steps, joints)'),
        ({'leftover': [[1.0], [1.0, 2.0]]}, Reason.REJECTED_LEFTOVER, 'received list'),
        ({'leftover': [['x']]}, Reason.REJECTED_LEFTOVER, 'received list'),
        ({'leftover': np.zeros(3)}, Reason.REJECTED_LEFTOVER, 'float64 of shape (3,)'),
    ],
)
def test_what_can_not_be_meant_is_refused(said: Any, reason: Reason, words: str) -> None:
    with pytest.raises(Rejected) as caught:
        wishes({'xinfer': said})
    assert caught.value.reason is reason
    assert words in caught.value.detail


def test_an_empty_leftover_is_none_at_all() -> None:
    empty = wishes({'xinfer': {'leftover': []}}).leftover
    assert empty is not None
    assert empty.shape == (0, 0)
