# SPDX-License-Identifier: Apache-2.0
"""A server without ROS: a front end with its engine process, for measurements."""

import queue
from collections.abc import Callable

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.decoders import DecodeThreads
from xinfer_ros.engine.engine_life import EngineLimits, EngineWatch
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.engine.status import FrontEndSettings, ServerStatus
from xinfer_ros.errors import ModelError


def start_server(
    config: ServerConfig,
    clock: Clock,
    answer: Callable[[Robot, Answer], None],
    gave_up: Callable[[str], None] = lambda text: None,
) -> FrontEnd:
    """
    Start a front end with its engine; return it when the engine is warm.

    :param clock: the steady clock
    :param answer: takes the answers, as that of ``FrontEnd``
    :param gave_up: called with a text when no engine serves any more
    :raises ModelError: if the engine does not become ready; nothing is left running then
    """
    settings = EngineSettings(config)
    device = settings.device()
    limits = EngineLimits.from_settings(settings, device)
    failures: queue.SimpleQueue[str] = queue.SimpleQueue()  # an empty one: ready

    def fail(text: str) -> None:
        failures.put(text)
        gave_up(text)

    def announce(status: ServerStatus) -> None:
        if status.engine_pid:
            failures.put('')

    front_end = FrontEnd(
        FrontEndSettings.from_config(config, 1, device),
        clock,
        EngineWatch(settings, 1, limits, clock, fail),
        DecodeThreads(config.decode_threads),
        answer,
        announce,
    )
    try:
        failure = failures.get(timeout=2 * limits.start_s)
    except queue.Empty:
        failure = f'the engine was not ready within {2 * limits.start_s:g} s'
    if failure:
        front_end.close()
        raise ModelError(failure)
    return front_end
