# SPDX-License-Identifier: Apache-2.0
"""Reading ahead: in order, bounded, and with the failures of what is read."""

import threading
from collections.abc import Iterator

import pytest

from xinfer_ros.episodes.read_ahead import ReadAhead


def _drain(ahead: ReadAhead[int]) -> list[int]:
    found = []
    while (item := ahead.peek(wait=True)) is not None:
        found.append(item)
        ahead.take()
    return found


def test_items_come_in_order_and_end() -> None:
    ahead = ReadAhead(range(1, 100), 4)
    assert _drain(ahead) == list(range(1, 100))
    assert ahead.ended
    ahead.close()


def test_no_more_is_read_than_may_wait() -> None:
    read: list[int] = []
    full = threading.Event()

    def source() -> Iterator[int]:
        for number in range(1, 1000):
            read.append(number)
            if number == 5:
                full.set()
            yield number

    ahead = ReadAhead(source(), 4)
    assert full.wait(10)
    assert ahead.peek(wait=True) == 1
    assert len(read) <= 6  # four wait, one is shown, one is on its way
    ahead.close()
    assert len(read) <= 6


def test_failure_is_raised_where_it_is_needed() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError('broken')

    ahead = ReadAhead(source(), 4)
    assert ahead.peek(wait=True) == 1
    ahead.take()
    with pytest.raises(ValueError, match='broken'):
        ahead.peek(wait=True)
    ahead.close()
