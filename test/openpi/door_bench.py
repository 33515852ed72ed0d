# SPDX-License-Identifier: Apache-2.0
"""An open websocket door before an engine that a test plays by hand."""

import queue
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np
from engine.scripted_engine import InlineExecutor, ScriptedEngine
from websockets.sync.client import ClientConnection, connect

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.engine.answer_router import AnswerRouter
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.records import Record, Submit
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.openpi.door import WebsocketDoor
from xinfer_ros.openpi.packer import pack
from xinfer_ros.openpi.settings import DoorSettings, listen
from xinfer_ros.openpi.unpacker import unpack

SETTINGS = DoorSettings(
    host='127.0.0.1',
    port=0,  # a free one
    token='',
    max_robots=4,
    max_bytes=10_000,
    budget_ns=400_000_000,
    period_ns=150_000_000,
    spacing_ns=30_000_000,
    prompt='by default',
    keys=(),
)
ROWS = np.arange(24, dtype=np.float32).reshape(8, 3)
WAIT_S = 20.0
EPOCH = 7


class WaitingEngine(ScriptedEngine):
    """Lets a test wait for what the front end submits."""

    def __init__(self, num_slots: int) -> None:
        super().__init__(num_slots)
        self._waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()

    def send(self, record: Record) -> None:
        """Keep a record."""
        super().send(record)
        if isinstance(record, Submit):
            self._waiting.put(record.request)

    def next_request(self) -> Request:
        """Return the next request, as soon as it is there."""
        return self._waiting.get(timeout=WAIT_S)


class DoorBench:
    """
    A front end, its door and its scripted engine; used as a context.

    :param ready: whether the engine is ready from the beginning
    :param lease_ns: of the robots [ns]
    :param changes: of the door's settings
    """

    def __init__(
        self, *, ready: bool = True, lease_ns: int = 30_000_000_000, **changes: Any
    ) -> None:
        self._connections = ExitStack()
        self.engine, self.router = WaitingEngine(8), AnswerRouter()
        settings = FrontEndSettings(
            max_robots=4, lease_ns=lease_ns, reserved_ns=4_000_000, first_epoch=EPOCH
        )
        clock = MonotonicClock()
        self.front_end = FrontEnd(
            settings, clock, self.engine, InlineExecutor(), self.router, lambda status: None
        )
        if ready:
            self.engine.become_ready(EPOCH)
        door = replace(SETTINGS, **changes)
        listening = listen(door)
        self.host, self.port = listening.getsockname()[:2]
        self.door = WebsocketDoor(door, listening, self.front_end, self.router, clock)

    def __enter__(self) -> 'DoorBench':
        """Do nothing more."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Close the front end, then the door, as a server does."""
        self.front_end.close()
        self.door.close()
        self._connections.close()

    def connect(self, query: str = '', **options: Any) -> ClientConnection:
        """Return a connection whose metadata has not been read yet."""
        uri = f'ws://{self.host}:{self.port}/{query}'
        return self._connections.enter_context(
            connect(uri, compression=None, max_size=None, **options)
        )

    def robot(self, query: str = '', **options: Any) -> 'DoorRobot':
        """Return a robot that has been told the metadata."""
        return DoorRobot(self.connect(query, **options))


class DoorRobot:
    """
    Speaks as openpi's robots do.

    :param connection: fresh
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.metadata = read(connection)

    def send(self, observation: object) -> None:
        """Send an observation."""
        self.connection.send(pack(observation))

    def error(self) -> str:
        """Return the error that comes."""
        text = self.connection.recv(timeout=WAIT_S)
        assert isinstance(text, str)
        return text

    def answer(self) -> dict[str, Any]:
        """Return the answer that comes."""
        return read(self.connection)


def read(connection: ClientConnection) -> dict[str, Any]:
    """Return the next message, which is binary."""
    message = connection.recv(timeout=WAIT_S)
    assert isinstance(message, bytes), message
    value = unpack(message)
    assert isinstance(value, dict)
    return value


def observation(**changes: Any) -> Mapping[str, Any]:
    """Return an observation that is accepted, with changes."""
    good = {
        'images': {'top': np.zeros((4, 4, 3), np.uint8)},
        'state': np.array([1.0, 2.0, 3.0]),
        'prompt': 'pick',
    }
    return good | changes
