# SPDX-License-Identifier: Apache-2.0
"""Engine processes one after the other: started, watched, and started anew when one ends."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.thread_name import start_thread
from xinfer_ros.engine.health import ExitCode, HangWatch, told_by
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Beat, Done, Dropped, Ready, Record
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ModelError, Reason, Rejected
from xinfer_ros.predict.calibration import Calibration

log = logging.getLogger(__name__)

MAX_SHORT_LIVES = 3
SHORT_LIFE_NS = 5_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """
    How long an engine may take.

    :param start_s: to load the model, and again to warm up [s]
    :param silence_s: between two signs of life [s]
    :param hung_ns: for a unit, before robots are answered HUNG [ns]
    """

    start_s: float
    silence_s: float
    hung_ns: int

    @classmethod
    def from_settings(cls, settings: EngineSettings, device: Calibration) -> 'EngineLimits':
        """Return the limits of the server's settings on a device."""
        config = settings.config
        return cls(
            start_s=config.engine_start_timeout_s,
            silence_s=config.engine_silence_s,
            hung_ns=settings.hung_ns(device),
        )


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
        # of the device against its calibration, as the last beat said
        self.slowdown = 1.0
        self.correction = (1.0, 1.0, 1.0)
        self.mirror_error = 0.0
        self._link = link
        self._free = list(range(slots.num_slots))

    @property
    def pid(self) -> int:
        """Return the process id of the engine."""
        return self._link.pid

    @property
    def slots_used(self) -> int:
        """Return the number of slots in use."""
        return self.slots.num_slots - len(self._free)

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

    def engine_hangs(self, life: EngineLife, hangs: bool) -> None:
        """Take in that a unit does not end, or that it has ended after all."""
        ...

    def engine_record(self, life: EngineLife, record: Done | Dropped) -> None:
        """Take in a result."""
        ...

    def engine_told(self, life: EngineLife, record: Beat | Timeline) -> None:
        """Take in what an engine tells of itself."""
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

    An engine ends itself when a unit does not end; one that is silent is killed.

    :param settings: what each process is told
    :param first_epoch: number of the first life; each restart adds one
    :param limits: how long an engine may take for what
    :param clock: the steady clock
    :param gave_up: called with a text when three lives in a row were short, or the watch failed
    :param refused: called with a text instead when the engine refuses its settings; None: as above
    :param first: a process that has been started already, to save time
    """

    def __init__(
        self,
        settings: EngineSettings,
        first_epoch: int,
        limits: EngineLimits,
        clock: Clock,
        gave_up: Callable[[str], None],
        first: EngineLink | None = None,
        refused: Callable[[str], None] | None = None,
    ) -> None:
        self._settings, self._epoch = settings, first_epoch
        self._limits, self._clock, self._gave_up = limits, clock, gave_up
        self._refused = refused if refused is not None else gave_up
        self._lock = threading.Lock()
        self._is_closing = False
        self._first = first
        self._links: list[EngineLink] = [first] if first is not None else []
        self._thread: threading.Thread | None = None

    def start(self, events: EngineEvents) -> None:
        """Start the first engine and return at once."""
        self._thread = start_thread('answer', lambda: self._watch(events))

    def close(self) -> None:
        """End the engine process, its spare and the thread."""
        with self._lock:
            self._is_closing = True
            links = list(self._links)
        for link in links:
            link.close()
        if self._thread is not None:
            self._thread.join()

    def _new_link(self, *, idle: bool) -> EngineLink:
        with self._lock:
            if self._is_closing:
                raise ModelError('the server is shutting down')
            link = EngineLink(self._settings, idle=idle)
            self._links.append(link)
            return link

    def _end(self, link: EngineLink) -> None:
        with self._lock:
            if link in self._links:
                self._links.remove(link)
        link.close()

    def _watch(self, events: EngineEvents) -> None:
        try:
            self._lives(events)
        except Exception as error:
            if not self._is_closing:
                log.exception('the watch over the engine has failed')
                self._gave_up(f'the watch over the engine has failed: {error}')

    def _lives(self, events: EngineEvents) -> None:
        short_lives, spare = 0, self._first
        while not self._is_closing and short_lives < MAX_SHORT_LIVES:
            if spare is not None and not spare.is_alive:
                self._end(spare)
                spare = None
            link = spare if spare is not None else self._new_link(idle=False)
            spare = None
            try:
                life = self._warm_up(link)
            except ModelError as error:
                self._end(link)
                short_lives += 1
                if not self._is_closing:
                    log.error('%s (%s)', error, told_by(link.returncode))
                if link.returncode == ExitCode.REFUSED:  # another try would end the same
                    self._refused('the engine refuses the settings; its log above says why')
                    return
                continue
            born_ns = self._clock.now_ns()
            events.engine_ready(life)
            spare = self._spare()
            self._serve(life, link, events)
            if self._is_closing:
                return
            is_short = self._clock.now_ns() - born_ns < SHORT_LIFE_NS
            short_lives = short_lives + 1 if is_short else 0
            self._epoch += 1
            events.engine_ended(self._epoch)
            self._end(link)
            log.error('the engine process %d has ended: %s', life.pid, told_by(link.returncode))
        if not self._is_closing:
            self._gave_up(f'{short_lives} engines in a row did not start or ended at once')

    def _spare(self) -> EngineLink | None:
        if not self._settings.config.spare_engine:
            return None
        try:
            return self._new_link(idle=True)
        except (OSError, ModelError) as error:
            log.warning('no spare engine: %s', error)
            return None

    def _warm_up(self, link: EngineLink) -> EngineLife:
        contract, slots = link.start(self._limits.start_s)
        try:
            warm = link.receive(self._limits.start_s)
        except TimeoutError:
            text = f'the engine did not warm up in {self._limits.start_s:g} s'
            raise ModelError(text) from None
        if not isinstance(warm, Ready):
            raise ModelError('the engine ended while it warmed up; see its log above')
        return EngineLife(self._epoch, link, contract, slots)

    def _serve(self, life: EngineLife, link: EngineLink, events: EngineEvents) -> None:
        """Hand on results until the engine has ended, and end it if it is silent."""
        watch = HangWatch(self._limits.hung_ns)
        while True:
            try:
                received = link.receive(self._limits.silence_s)
            except TimeoutError:
                log.error('no sign of life of the engine for %g s', self._limits.silence_s)
                break
            if received is None:
                return
            if isinstance(received, Done | Dropped):
                events.engine_record(life, received)
            elif isinstance(received, Beat):
                life.slowdown, life.correction = received.slowdown, received.correction
                life.mirror_error = received.mirror_error
                events.engine_told(life, received)
                if watch.has_changed(received.oldest_unit_ns):
                    log.error('a unit %s', 'hangs' if watch.hangs else 'has ended after all')
                    events.engine_hangs(life, watch.hangs)
            elif isinstance(received, Timeline):
                events.engine_told(life, received)
        link.kill()
