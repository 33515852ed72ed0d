# SPDX-License-Identifier: Apache-2.0
"""Engine processes one after the other: started, watched, and started anew when one ends."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Done, Dropped, EngineSettings, Ready, Record
from xinfer_ros.errors import ModelError, Reason, Rejected

log = logging.getLogger(__name__)

MAX_FAILED_STARTS = 3


class Connection(Protocol):
    """The part of an engine link that the front end uses."""

    @property
    def pid(self) -> int:
        """Return the process id of the engine."""
        ...

    def send(self, record: Record) -> None:
        """Send a record to the engine; silently lost if it has ended."""
        ...


class EngineLife:
    """
    One warm engine process: its contract and its slots.

    ``take_slot`` and ``free_slot`` are not thread-safe: the front end locks.

    :param epoch: number of this life
    """

    def __init__(
        self, epoch: int, link: Connection, contract: ModelContract, slots: SlotArrays
    ) -> None:
        self.epoch, self.contract, self.slots = epoch, contract, slots
        self._link = link
        self._free = list(range(slots.num_slots))

    @property
    def pid(self) -> int:
        """Return the process id of the engine."""
        return self._link.pid

    def send(self, record: Record) -> None:
        """Send a record to the engine."""
        self._link.send(record)

    def take_slot(self) -> int:
        """
        Reserve a slot.

        :raises Rejected: REJECTED_NO_SLOT if every slot is in use
        """
        if not self._free:
            raise Rejected(Reason.REJECTED_NO_SLOT, f'all {self.slots.num_slots} slots are in use')
        return self._free.pop()

    def free_slot(self, slot: int) -> None:
        """Give a slot back."""
        self._free.append(slot)


class EngineEvents(Protocol):
    """Who is told what engines do; called in one thread."""

    def engine_ready(self, life: EngineLife) -> None:
        """Take in that an engine is warm."""
        ...

    def engine_ended(self, next_epoch: int) -> None:
        """Take in that the warm engine has ended; the next life will have this number."""
        ...

    def engine_record(self, life: EngineLife, record: Done | Dropped) -> None:
        """Take in a result."""
        ...


class Engine(Protocol):
    """Where the front end gets its engines from."""

    def start(self, events: EngineEvents) -> None:
        """Start the first engine and return at once."""
        ...

    def close(self) -> None:
        """End the engine."""
        ...


class EngineWatch:
    """
    Keeps one engine process alive in a thread of its own.

    :param settings: what each process is told
    :param first_epoch: number of the first life; each restart adds one
    :param start_timeout_s: time to load and warm up [s]
    :param gave_up: called with a text when three starts in a row have failed
    """

    def __init__(
        self,
        settings: EngineSettings,
        first_epoch: int,
        start_timeout_s: float,
        gave_up: Callable[[str], None],
    ) -> None:
        self._settings, self._epoch = settings, first_epoch
        self._start_timeout_s, self._gave_up = start_timeout_s, gave_up
        self._closing = threading.Event()
        self._link: EngineLink | None = None
        self._spare: EngineLink | None = None
        self._thread: threading.Thread | None = None

    def start(self, events: EngineEvents) -> None:
        """Start the first engine and return at once."""
        self._thread = threading.Thread(
            target=self._watch, args=(events,), name='engine', daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the engine process and the thread."""
        self._closing.set()
        for link in (self._link, self._spare):
            if link is not None:
                link.close()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, events: EngineEvents) -> None:
        failed_starts = 0
        while not self._closing.is_set():
            try:
                life, link = self._start()
            except ModelError as error:
                if self._closing.is_set():
                    return
                failed_starts += 1
                log.error('%s', error)
                if failed_starts == MAX_FAILED_STARTS:
                    self._gave_up(f'{failed_starts} engine starts in a row failed: {error}')
                    return
                continue
            failed_starts = 0
            events.engine_ready(life)
            if self._settings.spare and not self._closing.is_set():
                self._spare = EngineLink(self._settings, idle=True)
            while (received := link.receive()) is not None:
                if isinstance(received, Done | Dropped):
                    events.engine_record(life, received)
            if self._closing.is_set():
                return
            self._epoch += 1
            log.error('the engine process %d has ended; starting another', life.pid)
            events.engine_ended(self._epoch)
            link.close()

    def _start(self) -> tuple[EngineLife, EngineLink]:
        """Start a process, the spare one if there is one, and wait until it is warm."""
        spare, self._spare = self._spare, None
        if spare is None or not spare.is_alive:
            spare = EngineLink(self._settings)
        link = self._link = spare
        try:
            contract, slots = link.start(self._start_timeout_s)
            try:
                warm = link.receive(self._start_timeout_s)
            except TimeoutError:
                warm = None
            if not isinstance(warm, Ready):
                raise ModelError(f'the engine did not warm up in {self._start_timeout_s:g} s')
        except ModelError:
            link.close()
            raise
        return EngineLife(self._epoch, link, contract, slots), link
