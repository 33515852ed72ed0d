# SPDX-License-Identifier: Apache-2.0
"""A part of a decision log is read as it was written; what is damaged is told or refused."""

from collections.abc import Callable
from dataclasses import asdict, replace
from random import Random

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.decision_log import (
    MAGIC,
    BlockKind,
    LogHeader,
    block,
    names_block,
    part_head,
    read_part,
)
from xinfer_ros.sched.settings import policy_settings

from .random_states import MS, random_device

DEVICE = random_device(Random(1))
SETTINGS = policy_settings('slack_gate', DEVICE, threshold_ms=33.0)
HEADER = LogHeader(
    policy='slack_gate', settings=asdict(SETTINGS), calibration=DEVICE, model='tiny',
    date='2026-01-31', names={0: 'left', 1: 'right'},
)  # fmt: skip


def _part() -> bytes:
    """Return a part with one dispatch in each of two blocks, and a robot that takes a place."""
    core = HEADER.core()
    core.keep_journal(True)
    data = part_head(HEADER, core.snapshot())
    for now_ns in (5 * MS, 6 * MS):
        core.dispatch(now_ns)
        data += block(BlockKind.CALLS, core.take_journal())
    return data + names_block({1: 'middle'}) + block(BlockKind.END, b'')


def test_header_makes_the_core_that_it_was_made_of_to_the_last_bit() -> None:
    found = LogHeader.from_bytes(HEADER.to_bytes())
    assert replace(found, calibration=DEVICE) == HEADER
    assert np.array_equal(found.calibration.rates, DEVICE.rates)
    assert policy_settings(found.policy, found.calibration, **found.settings) == SETTINGS
    assert found.core().snapshot() == HEADER.core().snapshot()


def test_part_is_read_as_it_was_written() -> None:
    part = read_part(_part())
    assert [call.now_ns for call in part.calls()] == [5 * MS, 6 * MS]
    assert part.names == {0: 'left', 1: 'middle'}
    assert (part.torn_bytes, part.is_closed) == (0, True)


@pytest.mark.parametrize('damage', [lambda d: d[:-3], lambda d: d[:-30] + b'?' + d[-29:]])
def test_torn_end_is_told_and_left_out(damage: Callable[[bytes], bytes]) -> None:
    """As a process leaves it that is killed while it writes."""
    part = read_part(damage(_part()))
    assert [call.now_ns for call in part.calls()] == [5 * MS, 6 * MS]
    assert part.torn_bytes > 0
    assert not part.is_closed


@pytest.mark.parametrize(
    ('data', 'words'),
    [
        (b'', 'it is no decision log; a server writes one with decision_log: FOLDER'),
        (b'PK\x03\x04 a zip', 'it is no decision log'),
        (MAGIC, 'it ends before the state of the scheduler'),
        (_part()[:200], 'it ends before the state of the scheduler'),
        (MAGIC + block(BlockKind.HEADER, b'{}') + block(BlockKind.STATE, b''), 'its header is'),
        (
            MAGIC + block(BlockKind.HEADER, b'{"format": 9}') + block(BlockKind.STATE, b''),
            'another version has written it; this one reads format 1',
        ),
    ],
)
def test_what_is_no_part_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_part(data)


def test_call_that_no_scheduler_has_is_refused() -> None:
    data = part_head(HEADER, HEADER.core().snapshot()) + block(BlockKind.CALLS, b'\x7f')
    with pytest.raises(ConfigError, match='a call in the log is damaged: no call of a scheduler'):
        list(read_part(data).calls())
