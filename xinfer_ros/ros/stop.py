# SPDX-License-Identifier: Apache-2.0
"""How a process ends: what must be done first is done at once, whoever wants the end."""

import logging
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger(__name__)


class Stop:
    """
    The wish to end, from a signal or from within; ``code`` becomes the exit code.

    Whatever stands in ``at_request`` is done in the thread that asks first, before anything else
    notices: no thread is waited for.
    """

    def __init__(self) -> None:
        self.code = 0
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._is_requested = False
        self._actions: list[Callable[[], None]] = []
        self._wake: Callable[[], None] = lambda: None

    def at_request(self, action: Callable[[], None]) -> None:
        """Do something when the end is wished for; from any thread."""
        self._actions.append(action)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Call something when the last actions are done, so that a thread which waits looks."""
        self._wake = wake

    def request(self, code: int = 0) -> None:
        """Ask the process to end."""
        with self._lock:
            self.code = max(self.code, code)
            is_first, self._is_requested = not self._is_requested, True
        if not is_first:
            return  # whoever was first is at it: the end must not overtake the last actions
        for action in self._actions:
            try:
                action()
            except Exception:
                log.exception('a last action has failed')
        self._event.set()
        self._wake()

    @property
    def is_requested(self) -> bool:
        """Return whether the process shall end: the last actions have been done."""
        return self._event.is_set()


def stop_at_signals(stop: Stop) -> None:
    """
    Let SIGINT and SIGTERM request the end, within a millisecond or so, from a thread of its own.

    Python runs signal handlers in the main thread only, and not while that waits in the
    middleware; but a byte is written to the wake-up descriptor as soon as the signal comes.
    To be called in the main thread.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in SIGNALS:
        signal.signal(number, _ignore)  # without a handler nothing is written
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(
        target=_watch, args=(reader, writer, stop), name='signals', daemon=True
    )
    thread.start()


def _ignore(number: int, frame: Any) -> None:
    """Handle a signal: the thread that reads the descriptor does all."""


def _watch(reader: socket.socket, writer: socket.socket, stop: Stop) -> None:
    """Read signal numbers to the end; ``writer`` is held so that its descriptor lives."""
    with writer:
        while byte := reader.recv(1):
            if byte[0] in SIGNALS:
                stop.request()


def stop_at_exceptions(stop: Stop) -> None:
    """Let an exception that nobody catches, in any thread, request the end with exit code 1."""

    def end(arguments: Any) -> None:
        facts = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        name = arguments.thread.name if arguments.thread is not None else 'a thread'
        log.error('%s ends by an exception', name, exc_info=facts)
        stop.request(1)

    threading.excepthook = end
