# SPDX-License-Identifier: Apache-2.0
"""Opens the doors of the server that are not ROS."""

import socket

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.answer_router import AnswerRouter, Door
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.openpi.settings import DoorSettings, listen


class DoorOpener:
    """
    Opens the websocket door of every front end, if there is to be one.

    Listens at once, so that a taken port is told before anything else has started.

    :param config: of the server
    :raises ConfigError: if the door can not be opened
    """

    def __init__(self, config: ServerConfig) -> None:
        self._settings = DoorSettings.from_config(config)
        self._listening: socket.socket | None = None
        if self._settings is not None:
            self._listening = listen(self._settings)

    def __call__(self, front_end: FrontEnd, router: AnswerRouter) -> list[Door]:
        """Return the open doors of a front end."""
        if self._settings is None:
            return []
        from xinfer_ros.openpi.door import WebsocketDoor  # only whoever opens it needs aiohttp

        listening, self._listening = self._listening or listen(self._settings), None
        clock = MonotonicClock()
        return [WebsocketDoor(self._settings, listening, front_end, router, clock)]
