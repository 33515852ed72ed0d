# SPDX-License-Identifier: Apache-2.0
"""Where the engine's loop waits for records of the front end, and takes them from."""

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from xinfer_ros.engine.codec import MAX_RECORD_BYTES, decode
from xinfer_ros.engine.records import Record


class Inbox(Protocol):
    """What an engine's loop takes its records from."""

    def wait(self, timeout_s: float) -> None:
        """Wait until a record has come, somebody rings, or the time is over."""
        ...

    def ring(self) -> None:
        """Let ``wait`` return, now or the next time; from any thread."""
        ...

    def records(self) -> Iterator[Record | None]:
        """Yield what has come so far, None when no more will; one caller at a time."""
        ...


class QueueInbox:
    """An inbox within a process."""

    def __init__(self) -> None:
        self._records = deque[Record | None]()
        self._bell = threading.Event()

    def put(self, record: Record | None) -> None:
        """Hand in a record, None for the end; from any thread, returns at once."""
        self._records.append(record)
        self._bell.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until a record has come, somebody rings, or the time is over."""
        self._bell.wait(timeout_s)
        self._bell.clear()

    def ring(self) -> None:
        """Let ``wait`` return, now or the next time; from any thread."""
        self._bell.set()

    def records(self) -> Iterator[Record | None]:
        """Yield what has come so far, None when no more will; one caller at a time."""
        while self._records:
            yield self._records.popleft()


class LinkInbox:
    """
    The front end's records, read by whoever is in the pipeline.

    A thread between the connection and the loop would cost every record a second wake-up and a
    turn of the interpreter's lock.

    :param link: SOCK_SEQPACKET connection to the front end; the end of it is the end of records
    :param notes: another one, for what nothing starts by: it wakes nobody, and what was sent there
        before a record of ``link`` is yielded before it
    """

    def __init__(self, link: socket.socket, notes: socket.socket) -> None:
        self._link, self._notes = link, notes
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def wait(self, timeout_s: float) -> None:
        """Wait until a record has come, somebody rings, or the time is over."""
        ready, _, _ = select.select((self._bell, self._link.fileno()), (), (), timeout_s)
        if self._bell in ready:
            os.eventfd_read(self._bell)

    def ring(self) -> None:
        """Let ``wait`` return, now or the next time; from any thread."""
        os.eventfd_write(self._bell, 1)

    def records(self) -> Iterator[Record | None]:
        """Yield what has come so far, None when no more will; one caller at a time."""
        while True:
            packet = _received(self._link)
            while note := _received(self._notes):  # after it: whatever was sent before it is here
                yield decode(note)
            if packet is None:
                return
            yield decode(packet) if packet else None
            if not packet:
                return


def _received(connection: socket.socket) -> bytes | None:
    """Return the next packet, an empty one if the connection has ended, None if there is none."""
    try:
        return connection.recv(MAX_RECORD_BYTES, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b''


def wait_for_hangup(link: socket.socket) -> None:
    """Return when the other end of a connection is gone; reads nothing."""
    poll = select.poll()
    poll.register(link, select.POLLRDHUP)
    poll.poll()
