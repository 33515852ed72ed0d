# SPDX-License-Identifier: Apache-2.0
"""The front end's hold on one engine process: start, records, shared slots, end."""

import contextlib
import logging
import mmap
import os
import socket
import subprocess
import sys

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.engine.codec import MAX_RECORD_BYTES, decode, encode
from xinfer_ros.engine.records import Announce, Contract, Record, Start
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ModelError

END_TIMEOUT_S = 3.0

log = logging.getLogger(__name__)


class EngineLink:
    """
    One life of the engine process.

    ``receive`` belongs to one thread; ``send`` and ``close`` to any. The end of the process,
    however it comes, is seen by ``receive`` within milliseconds: the kernel closes the connection.

    :param settings: what the process is told
    :param idle: let it import at idle priority; for a spare, which must not disturb its elder
    """

    def __init__(self, settings: EngineSettings, *, idle: bool = False) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._notes, their_notes = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = (theirs.fileno(), their_notes.fileno())
        arguments = [*map(str, fds), settings.to_json(), 'idle' if idle else 'now']
        command = [sys.executable, '-m', 'xinfer_ros.engine.process', *arguments]
        self._socket, self._packet = ours, memoryview(bytearray(MAX_RECORD_BYTES))
        # of its own: the time-out of who receives would hold up who sends
        self._outgoing = ours.dup()
        env = dict(os.environ, OMP_NUM_THREADS=str(settings.config.torch_threads))
        self._process = subprocess.Popen(command, pass_fds=fds, env=env)
        theirs.close()
        their_notes.close()

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return how the process has ended, as ``subprocess`` says it; None while it runs."""
        return self._process.poll()

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def start(self, timeout_s: float) -> tuple[ModelContract, SlotArrays]:
        """
        Let the process load its model, wait for the contract and map the slots.

        :raises ModelError: if the process ends or stays silent instead
        """
        self.send(Start())
        try:
            self._socket.settimeout(timeout_s)
            packet, fds, _, _ = socket.recv_fds(self._socket, MAX_RECORD_BYTES, 1)
        except OSError as error:
            raise ModelError(f'the engine process gave no contract: {error}') from error
        record = decode(packet) if packet else None
        if not isinstance(record, Contract) or len(fds) != 1:
            raise ModelError('the engine ended before its model was loaded; see its log above')
        size = slot_memory_bytes(record.model, record.num_slots)
        memory = mmap.mmap(fds[0], size)
        os.close(fds[0])
        return record.model, slot_arrays(record.model, record.num_slots, memoryview(memory))

    def receive(self, timeout_s: float | None = None) -> Record | None:
        """
        Wait for the next record; None when the process has ended.

        :raises TimeoutError: if nothing came in time
        """
        try:
            if timeout_s != self._socket.gettimeout():
                self._socket.settimeout(timeout_s)
            size = self._socket.recv_into(self._packet)
        except TimeoutError:
            raise
        except OSError:
            return None
        return decode(bytes(self._packet[:size])) if size else None

    def send(self, record: Record) -> None:
        """
        Send a record; lost if the process has ended, which ``receive`` will tell.

        A process that has left hundreds of records unread hangs: it is killed, since a request
        that was lost on the way would never be answered.
        """
        packet = encode(record)
        # nothing starts by an announcement: it waits for the next record that wakes the engine
        is_sent = isinstance(record, Announce) and _sent(self._notes, packet)
        if not is_sent and not _sent(self._outgoing, packet):
            log.error('the engine does not take its records; it is killed')
            self.kill()

    def kill(self) -> None:
        """End a process that does not listen any more."""
        self._process.kill()

    def close(self) -> None:
        """End the process: it ends by itself when the connection closes, or is killed."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()
        self._outgoing.close()
        self._notes.close()


def _sent(connection: socket.socket, packet: bytes) -> bool:
    """Send a packet; return False if there is no room for it. One to who has ended is lost."""
    try:
        connection.send(packet, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
