# SPDX-License-Identifier: Apache-2.0
"""Messages that may repeat: said at most once a period for each kind, with how often it was so."""

import logging
import re
import threading
from dataclasses import dataclass

from xinfer_ros.core.clock import Clock, MonotonicClock

SECOND_NS = 1_000_000_000
MAX_KINDS = 256  # more are one kind, so that no sender can fill the memory


@dataclass(slots=True)
class _Said:
    at_ns: int
    held_back: int = 0


class RepeatLimit:
    """
    Decides whether a message is said now, and counts those that were not. Thread-safe.

    :param period_ns: least time between two messages of a kind [ns]
    """

    def __init__(self, period_ns: int = SECOND_NS) -> None:
        self._period_ns = period_ns
        self._lock = threading.Lock()
        self._said: dict[str, _Said] = {}

    def words(self, kind: str, text: str, now_ns: int) -> str | None:
        """
        Return the message as it is to be said, None if it is held back.

        :param kind: what it repeats, such as a reason code
        :param text: the message; those held back are told by their number alone. What is no
            character that can be seen is written as an escape: parts of it come from others, who
            must not add lines to a log or move the cursor of who reads it
        :param now_ns: present time of any steady clock [ns]
        """
        with self._lock:
            if kind not in self._said and len(self._said) >= MAX_KINDS:
                kind = ''
            said = self._said.get(kind)
            if said is None:
                self._said[kind] = _Said(now_ns)
                return _seen(text)
            if now_ns - said.at_ns < self._period_ns:
                said.held_back += 1
                return None
            passed_s, held_back = (now_ns - said.at_ns) / 1e9, said.held_back
            said.at_ns, said.held_back = now_ns, 0
        if not held_back:
            return _seen(text)
        return f'{_seen(text)} ({held_back + 1} times in {passed_s:.1f} s)'


def _seen(text: str) -> str:
    return ''.join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class RepeatFilter(logging.Filter):
    """
    Lets each warning and error of a log through once a second, with how often it was so.

    Two are of one kind if they differ in figures alone. Information, and what ends a process, is
    never held back.

    :param clock: a steady clock
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock, self._limit = clock, RepeatLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged now; its text gets the count."""
        if not logging.WARNING <= record.levelno < logging.CRITICAL:
            return True
        text = record.getMessage()
        kind = f'{record.name} {re.sub("[0-9]+", "#", text)}'
        words = self._limit.words(kind, text, self._clock.now_ns())
        if words is None:
            return False
        record.msg, record.args = words, None
        return True


def set_up_log(form: str) -> None:
    """
    Let this process log to standard error, repeats held back.

    :param form: of a line, as ``logging`` writes it
    """
    logging.basicConfig(format=form, level=logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter(MonotonicClock()))
