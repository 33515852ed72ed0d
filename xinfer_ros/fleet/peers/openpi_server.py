# SPDX-License-Identifier: Apache-2.0
"""
A server loop that behaves as openpi's: one request at a time, the model inside of the handler.

What it does for a request is what the published loop does (openpi, ``websocket_policy_server``):
unpack, call the model while everybody else waits, pack, send. Its model sleeps for X.
"""

import contextlib
import time
from typing import Any

import msgpack
import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.fleet.peers.peer_requests import MARK
from xinfer_ros.fleet.peers.peer_server import run_peer
from xinfer_ros.openpi.packer import pack

HORIZON, ACTION_DIM = 50, 14


class OpenpiLoop:
    """
    Answers each observation with the same chunk, and its mark.

    :param model_s: how long the model sleeps [s]
    """

    def __init__(self, model_s: float) -> None:
        self._model_s, self._clock = model_s, MonotonicClock()
        self._actions = np.zeros((HORIZON, ACTION_DIM), np.float32)

    async def serve(self, connection: ServerConnection) -> None:
        """Serve one robot until it leaves, with or without a goodbye."""
        with contextlib.suppress(ConnectionClosed):
            await connection.send(pack({}))
            async for message in connection:
                observation = msgpack.unpackb(message, object_hook=_array)
                began_ns = self._clock.now_ns()
                answer = self._infer(observation)
                answer['server_timing'] = {'infer_ms': (self._clock.now_ns() - began_ns) / 1e6}
                await connection.send(pack(answer))

    def _infer(self, observation: dict[str, Any]) -> dict[str, Any]:
        if self._model_s:
            time.sleep(self._model_s)
        return {'actions': self._actions, MARK: observation[MARK]}


def _array(found: dict[Any, Any]) -> Any:
    if b'__ndarray__' not in found:
        return found
    return np.frombuffer(found[b'data'], found[b'dtype']).reshape(found[b'shape'])


async def listen(model_s: float) -> int:
    """Start to serve and return the port."""
    loop = OpenpiLoop(model_s)
    server = await serve(loop.serve, '127.0.0.1', 0, compression=None, max_size=None)
    port: int = next(iter(server.sockets)).getsockname()[1]
    return port


if __name__ == '__main__':
    raise SystemExit(run_peer(__doc__, listen))
