# SPDX-License-Identifier: Apache-2.0
"""The process of the server node."""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.thread_name import name_this_thread
from xinfer_ros.engine.answer_router import AnswerRouter, Door
from xinfer_ros.engine.decoders import DecodeThreads
from xinfer_ros.engine.engine_life import EngineLimits, EngineWatch
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.observe.fleet_view import FleetView, ViewSettings
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.ros.door_opener import DoorOpener
from xinfer_ros.ros.node_list import SERVER_NAME, SERVER_NAMESPACE
from xinfer_ros.ros.page_opener import PageOpener
from xinfer_ros.ros.process import NodeArguments, Stop, node_settings, run_process

# longest turn of a thread that others wait for; Python's 5 ms are more than a request takes
SWITCH_S = 0.0005


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(ServerConfig, argv, SERVER_NAME, SERVER_NAMESPACE)
    settings = EngineSettings(config)
    calibration = settings.checked()  # a wrong one is refused before anything starts
    doors = DoorOpener(config)
    # before rclpy is imported: loading the model takes longest
    first = EngineLink(settings) if config.autostart else None
    return _session(arguments, config, calibration, first, doors, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments,
    config: ServerConfig,
    calibration: Calibration,
    first: EngineLink | None,
    doors: DoorOpener,
    stop: Stop,
) -> Iterator[tuple[list[Any], str]]:
    from rclpy.lifecycle import TransitionCallbackReturn

    from xinfer_ros.ros.server_node import ServerNode

    view = FleetView(ViewSettings.from_config(config))

    def fatal(text: str) -> None:
        logging.getLogger('server').critical('%s', text)
        stop.request(1)

    def refused(text: str) -> None:
        logging.getLogger('server').critical('%s', text)
        stop.request(2)  # as for any setting that is wrong: not worth another try

    def make_front_end(answer: Any, announce: Any) -> FrontEnd:
        first_epoch = time.time_ns()  # a nonce: differs from any earlier server's, never compared
        clock, settings = MonotonicClock(), EngineSettings(config)
        limits = EngineLimits.from_settings(settings, calibration)
        engine = EngineWatch(settings, first_epoch, limits, clock, fatal, first, refused)
        decoders = DecodeThreads(config.decode_threads)
        front_end = FrontEndSettings.from_config(config, first_epoch, calibration)
        served = FrontEnd(front_end, clock, engine, decoders, answer, announce, view)
        view.attach(served)
        return served

    page = PageOpener(config, view)

    def open_doors(front_end: FrontEnd, router: AnswerRouter) -> list[Door]:
        return [*doors(front_end, router), *page(front_end)]

    node = ServerNode(
        arguments.name, arguments.namespace, config, make_front_end, view, open_doors
    )
    if config.autostart:
        for transition in (node.trigger_configure, node.trigger_activate):
            if transition() != TransitionCallbackReturn.SUCCESS:
                fatal('the server could not be configured and activated; see above')
                break
    try:
        yield [node], config.rclpy_executor
    finally:
        node.on_cleanup(None)  # whatever state somebody has brought it to
        node.destroy_node()


def main() -> int:
    """Run the server: ``ros2 run xinfer_ros server --ros-args --params-file FILE``."""
    name_this_thread('xinfer_server')
    sys.setswitchinterval(SWITCH_S)
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
