# SPDX-License-Identifier: Apache-2.0
"""What every peer's process does: reads X, listens, tells its port, ends with its parent."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

PORT = 'peer-port'  # line by which it tells where it listens


def run_peer(description: str | None, listen: Callable[[float], Awaitable[int]]) -> int:
    """
    Serve until stdin ends.

    :param listen: starts to serve, given the model time [s]; returns the port
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        '--x-ms', type=float, default=0.0, help='model time of each request, slept through [ms]'
    )
    asyncio.run(_serve(parser.parse_args().x_ms / 1e3, listen))
    return 0


async def _serve(model_s: float, listen: Callable[[float], Awaitable[int]]) -> None:
    ended = asyncio.Event()

    def heard() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            ended.set()

    port = await listen(model_s)
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), heard)
    print(PORT, port, flush=True)
    await ended.wait()
