# SPDX-License-Identifier: Apache-2.0
"""Messages that repeat."""

import logging

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.repeats import MAX_KINDS, SECOND_NS, RepeatFilter, RepeatLimit

MS = 1_000_000


def test_a_message_is_said_once_a_second_with_how_often_it_was_so() -> None:
    """OB-02: at most one log line a second for each reason, with a count."""
    limit, said = RepeatLimit(), []
    for tick in range(1000):  # ten seconds
        words = limit.words('EXPIRED', f'expired at {tick}', tick * 10 * MS)
        if words is not None:
            said.append(words)
    assert said[:2] == ['expired at 0', 'expired at 100 (100 times in 1.0 s)']
    assert len(said) == 10


def test_text_of_others_adds_no_line_to_a_log_and_moves_no_cursor() -> None:
    text = 'found are a\nb\x1b[2J\u202ec, größe'
    assert RepeatLimit().words('A', text, 0) == r'found are a\nb\x1b[2J\u202ec, größe'


def test_kinds_do_not_hold_each_other_back() -> None:
    limit = RepeatLimit()
    assert limit.words('A', 'a', 0) == 'a'
    assert limit.words('B', 'b', 1) == 'b'
    assert limit.words('A', 'a', 2) is None


def test_what_was_not_held_back_has_no_count() -> None:
    limit = RepeatLimit()
    assert limit.words('A', 'first', 0) == 'first'
    assert limit.words('A', 'second', SECOND_NS) == 'second'
    assert limit.words('A', 'third', SECOND_NS + 1) is None
    assert limit.words('A', 'fourth', 3 * SECOND_NS) == 'fourth (2 times in 2.0 s)'


def test_a_sender_can_not_fill_the_memory_with_kinds() -> None:
    limit = RepeatLimit()
    for number in range(MAX_KINDS):
        assert limit.words(str(number), 'new', 0) == 'new'
    assert limit.words('one more', 'new', 0) == 'new'
    assert limit.words('and another', 'new', 0) is None


def test_log_of_a_process_holds_repeats_back() -> None:
    """OB-02: whatever figures they have; what is no trouble, or ends the process, is said."""
    clock, said = SimulatedClock(), []
    logger = logging.Logger('a process')
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(RepeatFilter(clock))
    logger.addHandler(handler)
    for number in range(200):
        logger.error('request %d could not be prepared', number)
        logger.info('robot %d registered', number) if number < 3 else None
        logger.critical('the end') if number < 2 else None
        clock.advance(10 * MS)
    assert said == [
        'request 0 could not be prepared',
        'robot 0 registered',
        'the end',
        'robot 1 registered',
        'the end',
        'robot 2 registered',
        'request 100 could not be prepared (100 times in 1.0 s)',
    ]
