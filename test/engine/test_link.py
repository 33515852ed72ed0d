# SPDX-License-Identifier: Apache-2.0
"""The connection to an engine process that does not do its part."""

import os
import signal

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.health import ExitCode
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Announce, Cancel, Ready
from xinfer_ros.engine.settings import EngineSettings

ECHO = EngineSettings(ServerConfig(model='echo', spare_engine=False))
MORE_THAN_THE_CONNECTION_HOLDS = 2000
MORE_THAN_ITS_NOTES_HOLD = 400
TIMEOUT_S = 60.0


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


def test_announcements_that_nothing_follows_wake_the_engine_and_do_not_end_it() -> None:
    """A robot that replaces its question faster than it is prepared harms nobody."""
    link = EngineLink(ECHO)
    try:
        link.start(TIMEOUT_S)
        assert isinstance(link.receive(TIMEOUT_S), Ready)
        os.kill(link.pid, signal.SIGSTOP)  # it has not looked yet
        for number in range(MORE_THAN_ITS_NOTES_HOLD):
            link.send(Announce(robot=1, arrival_ns=number, budget_ns=10**9, period_ns=10**9))
        os.kill(link.pid, signal.SIGCONT)
    finally:
        link.close()
    assert link.returncode == ExitCode.OK
