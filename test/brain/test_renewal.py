# SPDX-License-Identifier: Apache-2.0
"""After a loss of capacity lost contexts are computed again one by one."""

from xinfer_ros.brain.book import Book, Record
from xinfer_ros.brain.controller import Arrival
from xinfer_ros.brain.renewal import Renewal


def record(name: str, turns: int) -> Record:
    arrival = Arrival(episode=name, robot=name)
    return Record(arrival=arrival, number=1, tokens=0, turns=turns)


def is_lost(record: Record) -> bool:
    return record.arrival.episode.startswith('lost')


LOST, CACHED, NEW = record('lost', 5), record('cached', 5), record('new', 0)


def test_cached_contexts_come_first_then_a_lost_one_then_new_episodes() -> None:
    renewal = Renewal(settle_ns=100, renew_ns=20)
    renewal.begin(0)
    order = renewal.order(is_lost, 10)
    assert order is not None
    assert order(CACHED) < order(LOST) < order(NEW)


def test_after_a_lost_context_new_episodes_come_for_a_while() -> None:
    renewal = Renewal(settle_ns=100, renew_ns=20)
    renewal.begin(0)
    renewal.renewed(10)
    order = renewal.order(is_lost, 29)
    assert order is not None
    assert order(CACHED) < order(NEW) < order(LOST)
    assert renewal.bars([CACHED], LOST, is_lost, 29)
    assert not renewal.bars([CACHED], LOST, is_lost, 30)


def test_one_lost_context_is_computed_at_a_time() -> None:
    renewal = Renewal(settle_ns=100, renew_ns=20)
    renewal.begin(0)
    assert renewal.bars([CACHED, LOST], LOST, is_lost, 50)
    assert not renewal.bars([CACHED, LOST], CACHED, is_lost, 50)
    assert not renewal.bars([CACHED], LOST, is_lost, 50)


def test_nobody_is_held_back_for_good() -> None:
    renewal = Renewal(settle_ns=100, renew_ns=20)
    assert not renewal.is_on(0)
    renewal.begin(0)
    renewal.renewed(99)
    assert renewal.is_on(99)
    assert renewal.order(is_lost, 100) is None
    assert not renewal.bars([LOST], LOST, is_lost, 100)


def test_order_in_the_line_can_be_given() -> None:
    book = Book()
    for name in ('a', 'b'):
        book.add(Arrival(episode=name, robot=name), 0)
    book.add(Arrival(episode='c', robot='c', priority=1), 0)
    assert book.next().arrival.episode == 'c'  # type: ignore[union-attr]
    book.remove('c')
    second = book.next(lambda record: record.arrival.episode == 'a')
    assert second is not None
    assert second.arrival.episode == 'b'
    assert book.next().arrival.episode == 'a'  # type: ignore[union-attr]
