# SPDX-License-Identifier: Apache-2.0
"""Items that a thread reads before they are needed: who takes them waits for no disk."""

import queue
import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

Item = TypeVar('Item')


class ReadAhead(Generic[Item]):
    """
    Reads an iterable in a thread of its own, a bounded number of items ahead.

    :param source: what is read
    :param limit: items that may wait
    """

    def __init__(self, source: Iterable[Item], limit: int) -> None:
        self._source = source
        self._waiting: queue.Queue[Item] = queue.Queue(limit)
        self._closing = threading.Event()
        self._done = threading.Event()
        self._failure: Exception | None = None
        self._first: Item | None = None
        self._thread = threading.Thread(target=self._run, name='read_ahead', daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Return whether everything has been taken."""
        return self._done.is_set() and self._first is None and self._waiting.empty()

    def peek(self, wait: bool = False) -> Item | None:
        """
        Return the next item and leave it there; None if there is none yet, or no more.

        :param wait: whether to wait for it
        :raises Exception: what the source has raised
        """
        while self._first is None:
            try:
                self._first = self._waiting.get(wait, 0.05)
            except queue.Empty:
                if self._done.is_set() and self._waiting.empty() and self._failure is not None:
                    raise self._failure from None
                if not wait or (self._done.is_set() and self._waiting.empty()):
                    return None
        return self._first

    def take(self) -> None:
        """Take the item away that ``peek`` has shown."""
        self._first = None

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._source:
                if not self._put(item):
                    return
        except Exception as error:
            self._failure = error
        finally:
            self._done.set()

    def _put(self, item: Item) -> bool:
        while not self._closing.is_set():
            try:
                self._waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
