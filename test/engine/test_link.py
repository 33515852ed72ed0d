# SPDX-License-Identifier: Apache-2.0
"""The connection to an engine process that does not do its part."""

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Cancel
from xinfer_ros.engine.settings import EngineSettings

ECHO = EngineSettings(ServerConfig(model='echo', spare_engine=False))
MORE_THAN_THE_CONNECTION_HOLDS = 2000


def test_engine_that_takes_no_records_is_killed_and_not_waited_for() -> None:
    """A request that is lost on the way would never be answered, and its slot never be free."""
    link = EngineLink(ECHO)
    try:
        for key in range(MORE_THAN_THE_CONNECTION_HOLDS):  # before the process has begun to read
            link.send(Cancel(key=key))
        assert link.receive(timeout_s=10.0) is None
    finally:
        link.close()
    assert not link.is_alive
