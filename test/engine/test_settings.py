# SPDX-License-Identifier: Apache-2.0
"""The server's settings on their way into the engine process."""

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.settings import EngineSettings


def test_no_token_stands_on_the_command_line_of_the_engine() -> None:
    """SE-02: everybody on the machine may read that."""
    secret = 'of-nobodys-business'
    config = ServerConfig(
        max_robots=7,
        http_token=f'{secret}-1',
        websocket_port=8000,
        websocket_host='0.0.0.0',
        websocket_token=f'{secret}-2',
    )
    text = EngineSettings(config).to_json()
    assert secret not in text
    read = EngineSettings.from_json(text).config
    assert (read.max_robots, read.websocket_host, read.http_port) == (7, '0.0.0.0', 0)
