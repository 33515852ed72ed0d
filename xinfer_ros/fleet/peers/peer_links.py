# SPDX-License-Identifier: Apache-2.0
"""The robots' ends of the peers' wires: a connection each, in one loop."""

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable

import msgpack
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from xinfer_ros.fleet.peers.peer_requests import MARK, MARK_BYTES, Mark

Answered = Callable[[Mark | None], None]
_LENGTH = struct.Struct('<I')
_SEND_BYTES = 4 * 2**20  # so that the kernel takes a whole request at once


class PeerLink(asyncio.Protocol, ABC):
    """
    One robot's connection.

    :param answered: told the mark of each answer, None if it can't be read
    """

    def __init__(self, answered: Answered) -> None:
        self._answered = answered
        self._transport: asyncio.Transport | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation."""
        assert isinstance(transport, asyncio.Transport)
        connected = transport.get_extra_info('socket')
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        self._transport = transport
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the peer has gone."""
        self.is_closed = True

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    @abstractmethod
    def _begin(self) -> None:
        """Say what is to be said first."""

    @abstractmethod
    def send(self, request: bytes, mark: Mark) -> None:
        """Send a request."""


class FloorLink(PeerLink):
    """Sends a length, the mark and the request; gets a length, the mark and a chunk."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(answered)
        self._received = bytearray()

    def _begin(self) -> None:
        self.ready.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Take in answers that are whole."""
        self._received += data
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            self._answered(Mark.unpacked(body[:MARK_BYTES]))

    def send(self, request: bytes, mark: Mark) -> None:
        """Send a request; the mark stands at its begin, where the floor looks for it."""
        length = _LENGTH.pack(MARK_BYTES + len(request))
        self._write(b''.join((length, mark.packed(), request)))


class OpenpiLink(PeerLink):
    """
    Speaks the websocket protocol of openpi's robots; the mark stands in the observation.

    :param port: of the server
    """

    def __init__(self, port: int, answered: Answered) -> None:
        super().__init__(answered)
        self._wire = ClientProtocol(parse_uri(f'ws://127.0.0.1:{port}/'), max_size=None)

    def _begin(self) -> None:
        self._wire.send_request(self._wire.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take in the metadata at first, then answers; pings are answered."""
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if not isinstance(event, Frame) or event.opcode not in (Opcode.BINARY, Opcode.TEXT):
                continue
            if self.ready.done():
                self._answered(_mark(bytes(event.data)))
            else:
                self.ready.set_result(None)
        self._flush()

    def send(self, request: bytes, mark: Mark) -> None:
        """Send an observation."""
        self._wire.send_binary(request)
        self._flush()

    def _flush(self) -> None:
        for data in self._wire.data_to_send():
            if data:  # an empty one ends the connection
                self._write(data)


def _mark(message: bytes) -> Mark | None:
    try:
        return Mark.unpacked(msgpack.unpackb(message)[MARK])
    except (ValueError, KeyError, TypeError):
        return None
