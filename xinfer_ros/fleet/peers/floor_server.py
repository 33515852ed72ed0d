# SPDX-License-Identifier: Apache-2.0
"""The floor: bytes over TCP, a fixed answer; what any server of this machine costs at least."""

import asyncio
import struct
import time

from xinfer_ros.fleet.peers.peer_requests import MARK_BYTES
from xinfer_ros.fleet.peers.peer_server import run_peer

LENGTH = struct.Struct('<I')  # of what follows [bytes]
ANSWER_BYTES = 50 * 14 * 4  # a chunk of float32
_BUFFER_BYTES = 2**20


class FloorConnection(asyncio.BufferedProtocol):
    """
    Reads a length and as many bytes, and answers with their mark and a fixed chunk.

    :param model_s: how long it sleeps before an answer [s]
    """

    def __init__(self, model_s: float) -> None:
        self._model_s = model_s
        self._buffer = bytearray(_BUFFER_BYTES)
        self._filled = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Answer every request that is whole; the buffer grows to the largest one."""
        self._filled += nbytes
        while self._filled >= LENGTH.size:
            needed = LENGTH.size + LENGTH.unpack_from(self._buffer)[0]
            if needed > len(self._buffer):
                self._buffer.extend(bytes(needed - len(self._buffer)))
            if self._filled < needed:
                return
            self._answer(bytes(self._buffer[LENGTH.size : LENGTH.size + MARK_BYTES]))
            self._filled -= needed
            if self._filled:
                self._buffer[: self._filled] = self._buffer[needed : needed + self._filled]

    def _answer(self, mark: bytes) -> None:
        if self._model_s:
            time.sleep(self._model_s)
        body = mark + bytes(ANSWER_BYTES)
        if self._transport is not None:
            self._transport.write(LENGTH.pack(len(body)) + body)


async def listen(model_s: float) -> int:
    """Start to serve and return the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: FloorConnection(model_s), '127.0.0.1', 0)
    port: int = server.sockets[0].getsockname()[1]
    return port


if __name__ == '__main__':
    raise SystemExit(run_peer(__doc__, listen))
