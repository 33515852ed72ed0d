# SPDX-License-Identifier: Apache-2.0
"""When requests are prepared on the CPU: beside the device's work, or in turn with it."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from xinfer_ros.engine.decoders import Decoders
from xinfer_ros.engine.pending import Pending

Step = Callable[[Pending], None]


class Preparation(Protocol):
    """Decides when a request is prepared and when it goes on to the engine; thread-safe."""

    def add(self, pending: Pending) -> None:
        """Take in a request; it is prepared now or later, in a decoder's thread."""
        ...

    def withdraw(self, pending: Pending) -> bool:
        """Take a request out that nobody waits for; return whether it had not begun yet."""
        ...

    def prepared(self, pending: Pending, *, good: bool) -> None:
        """
        Take in that a request has been prepared; it goes to the engine now or later.

        :param good: False if it ended here: it was superseded or refused
        """
        ...

    def ended(self, pending: Pending) -> None:
        """Take in that the engine has let go of a request."""
        ...

    def reset(self) -> None:
        """Take in that the engine is gone, and with it everything that it had."""
        ...


def _start(decoders: Decoders, prepare: Step, pending: Pending) -> None:
    with suppress(RuntimeError):  # the server closes, and has answered the request already
        decoders.submit(prepare, pending)


def preparation(*, overlap: bool) -> 'type[OverlappedPreparation | AlternatingPreparation]':
    """Return how requests are prepared: beside the device's work, or in turn with it."""
    return OverlappedPreparation if overlap else AlternatingPreparation


class OverlappedPreparation:
    """
    Prepares a request as soon as a decoder is free, whatever the device does.

    :param decoders: runs ``prepare``
    :param prepare: prepares a request and tells ``prepared``
    :param hand_over: gives a request to the engine
    """

    def __init__(self, decoders: Decoders, prepare: Step, hand_over: Step) -> None:
        self._decoders, self._prepare, self._hand_over = decoders, prepare, hand_over

    def add(self, pending: Pending) -> None:
        """Prepare a request."""
        _start(self._decoders, self._prepare, pending)

    def withdraw(self, pending: Pending) -> bool:
        """Return False: a decoder has it."""
        return False

    def prepared(self, pending: Pending, *, good: bool) -> None:
        """Hand a request over."""
        if good:
            self._hand_over(pending)

    def ended(self, pending: Pending) -> None:
        """Do nothing: nothing waits for it."""

    def reset(self) -> None:
        """Do nothing: nothing waits for it."""


class AlternatingPreparation:
    """
    Prepares requests only while the device is idle: the ablation of CPU-GPU overlap.

    Turns: everything that has come is prepared, then all of it goes to the engine, and when the
    engine has let go of the last of it, the next turn begins.

    :param decoders: runs ``prepare``
    :param prepare: prepares a request and tells ``prepared``
    :param hand_over: gives a request to the engine
    """

    def __init__(self, decoders: Decoders, prepare: Step, hand_over: Step) -> None:
        self._decoders, self._prepare, self._hand_over = decoders, prepare, hand_over
        self._lock = threading.Lock()
        self._waiting: list[Pending] = []
        self._preparing: set[Pending] = set()
        self._ready: list[Pending] = []
        self._computing: set[Pending] = set()

    def add(self, pending: Pending) -> None:
        """Prepare a request in this turn, if the device is idle, or in the next one."""
        with self._lock:
            if self._computing:
                self._waiting.append(pending)
                return
            self._preparing.add(pending)
        _start(self._decoders, self._prepare, pending)

    def withdraw(self, pending: Pending) -> bool:
        """Take a request out that waits for the next turn."""
        with self._lock:
            if pending not in self._waiting:
                return False
            self._waiting.remove(pending)
            return True

    def prepared(self, pending: Pending, *, good: bool) -> None:
        """Hand everything over when the last of this turn is prepared."""
        with self._lock:
            self._preparing.discard(pending)
            if good:
                self._ready.append(pending)
            if self._preparing:
                return
            leaving, self._ready = self._ready, []
            self._computing.update(leaving)
        for ready in leaving:
            self._hand_over(ready)

    def ended(self, pending: Pending) -> None:
        """Begin the next turn when the device is idle."""
        with self._lock:
            if pending not in self._computing:
                return
            self._computing.discard(pending)
            if self._computing:
                return
            beginning, self._waiting = self._waiting, []
            self._preparing.update(beginning)
        for waiting in beginning:
            _start(self._decoders, self._prepare, waiting)

    def reset(self) -> None:
        """Begin the next turn: the engine has nothing any more."""
        with self._lock:
            self._computing.clear()
            self._ready.clear()
            beginning, self._waiting = self._waiting, []
            self._preparing.update(beginning)
        for waiting in beginning:
            _start(self._decoders, self._prepare, waiting)
