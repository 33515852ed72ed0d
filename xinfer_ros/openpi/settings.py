# SPDX-License-Identifier: Apache-2.0
"""Settings of the websocket door."""

import socket
from dataclasses import dataclass

from xinfer_ros.config import ServerConfig
from xinfer_ros.errors import ConfigError

BACKLOG = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSettings:
    """
    Where the door is, who may come in, and what is taken for granted of whoever does.

    :param max_robots: connections at once
    :param max_bytes: of one observation [bytes]
    :param budget_ns: response budget of a request that names none [ns]
    :param period_ns: ``TE`` of one that names none [ns]
    :param spacing_ns: of the rows of one that names none [ns]
    :param prompt: instruction of one that has none
    :param keys: key of an observation and the name of what stands under it
    """

    host: str
    port: int
    token: str
    max_robots: int
    max_bytes: int
    budget_ns: int
    period_ns: int
    spacing_ns: int
    prompt: str
    keys: tuple[tuple[str, str], ...]

    @classmethod
    def from_config(cls, config: ServerConfig) -> 'DoorSettings | None':
        """
        Return the settings, None if the door is closed.

        :raises ConfigError: if an entry of websocket_keys is wrong
        """
        keys = tuple(_key_and_name(entry) for entry in config.websocket_keys)
        if not config.websocket_port:
            return None
        return cls(
            host=config.websocket_host,
            port=config.websocket_port,
            token=config.websocket_token,
            max_robots=config.websocket_robots,
            max_bytes=round(config.websocket_max_mb * 1e6),
            budget_ns=round(config.websocket_budget_s * 1e9),
            period_ns=round(config.websocket_period_s * 1e9),
            spacing_ns=round(config.websocket_spacing_s * 1e9),
            prompt=config.websocket_prompt,
            keys=keys,
        )


def _key_and_name(entry: str) -> tuple[str, str]:
    key, equals, name = entry.rpartition('=')
    if not (key and equals and name):
        raise ConfigError(
            f'websocket_keys has the entry {entry!r}; KEY=NAME is needed, as in '
            'observation/image=top or observation/joint_position=state'
        )
    return key, name


def listen(settings: DoorSettings) -> socket.socket:
    """
    Return a socket that listens where the door is to be; robots that come now have to wait.

    :raises ConfigError: if that is not possible, as when the port is taken
    """
    try:
        family = socket.AF_INET6 if ':' in settings.host else socket.AF_INET
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f'websocket_host {settings.host} and websocket_port {settings.port} can not be '
            f'listened on: {error.strerror or error}; choose another port, or end what has it'
        ) from error
