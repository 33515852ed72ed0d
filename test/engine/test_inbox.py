# SPDX-License-Identifier: Apache-2.0
"""Where the engine takes its records from."""

import socket
import threading
from collections.abc import Iterator

import pytest

from xinfer_ros.engine.codec import encode
from xinfer_ros.engine.inbox import LinkInbox, QueueInbox, wait_for_hangup
from xinfer_ros.engine.records import Announce, Cancel, Record

TIMEOUT_S = 10.0
ANNOUNCE = Announce(robot=1, arrival_ns=2, budget_ns=3, period_ns=4)


class Wire:
    """Both ends of the connections of an inbox."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.notes, their_notes = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.theirs = theirs
        self.inbox = LinkInbox(theirs, their_notes)
        self._open = (self.link, self.notes, theirs, their_notes)

    def records(self) -> list[Record | None]:
        """Return what has come."""
        return list(self.inbox.records())

    def close(self) -> None:
        """Close every end."""
        for connection in self._open:
            connection.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Return a connected inbox."""
    wire = Wire()
    yield wire
    wire.close()


def test_a_record_ends_the_wait_and_is_yielded_once(wire: Wire) -> None:
    assert wire.records() == []
    wire.link.send(encode(Cancel(key=1)))
    wire.inbox.wait(TIMEOUT_S)
    assert wire.records() == [Cancel(key=1)]
    assert wire.records() == []


def test_notes_come_before_the_record_that_wakes(wire: Wire) -> None:
    wire.link.send(encode(Cancel(key=1)))
    wire.notes.send(encode(ANNOUNCE))
    wire.link.send(encode(Cancel(key=2)))
    assert wire.records() == [ANNOUNCE, Cancel(key=1), Cancel(key=2)]


def test_a_note_comes_before_a_later_record_whatever_is_read_meanwhile(wire: Wire) -> None:
    """The scheduler would take the announcement of a request for that of the next one."""
    wire.link.send(encode(Cancel(key=1)))
    records = wire.inbox.records()
    assert next(records) == Cancel(key=1)
    wire.notes.send(encode(ANNOUNCE))
    wire.link.send(encode(Cancel(key=2)))
    assert list(records) == [ANNOUNCE, Cancel(key=2)]


def test_a_note_alone_wakes_nobody(wire: Wire) -> None:
    wire.notes.send(encode(ANNOUNCE))
    wire.inbox.wait(0.0)
    wire.inbox.ring()  # else the next line would wait for long
    wire.inbox.wait(TIMEOUT_S)
    assert wire.records() == [ANNOUNCE]


def test_who_rings_ends_one_wait(wire: Wire) -> None:
    wire.inbox.ring()
    wire.inbox.ring()
    wire.inbox.wait(TIMEOUT_S)
    wire.inbox.wait(0.0)
    assert wire.records() == []


def test_the_end_of_the_connection_is_the_end_of_records(wire: Wire) -> None:
    wire.link.send(encode(Cancel(key=1)))
    wire.link.close()
    wire.inbox.wait(TIMEOUT_S)
    assert wire.records() == [Cancel(key=1), None]
    wire.inbox.wait(TIMEOUT_S)
    assert wire.records() == [None]


def test_a_hangup_is_noticed_although_nobody_reads(wire: Wire) -> None:
    wire.link.send(encode(Cancel(key=1)))
    watch = threading.Thread(target=wait_for_hangup, args=(wire.theirs,))
    watch.start()
    wire.link.close()
    watch.join(TIMEOUT_S)
    assert not watch.is_alive()
    assert wire.records()[0] == Cancel(key=1)


def test_an_inbox_within_a_process_wakes_and_yields_in_order() -> None:
    inbox = QueueInbox()
    inbox.put(Cancel(key=1))
    inbox.put(None)
    inbox.wait(TIMEOUT_S)
    assert list(inbox.records()) == [Cancel(key=1), None]
    inbox.ring()
    inbox.wait(TIMEOUT_S)
    assert list(inbox.records()) == []
