# SPDX-License-Identifier: Apache-2.0
"""The process of the server node."""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.engine_life import EngineWatch
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.records import EngineSettings
from xinfer_ros.engine.status import FrontEndSettings
from xinfer_ros.ros.node_list import SERVER_NAME, SERVER_NAMESPACE
from xinfer_ros.ros.process import NodeArguments, Stop, node_settings, run_process


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(ServerConfig, argv, SERVER_NAME, SERVER_NAMESPACE)
    return _session(arguments, config, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments, config: ServerConfig, stop: Stop
) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.server_node import ServerNode

    def fatal(text: str) -> None:
        logging.getLogger('server').critical('%s', text)
        stop.request(1)

    def make_front_end(answer: Any, announce: Any) -> FrontEnd:
        first_epoch = time.time_ns()  # a nonce: differs from any earlier server's, never compared
        engine = EngineWatch(
            EngineSettings.from_config(config), first_epoch, config.engine_start_timeout_s, fatal
        )
        decoders = ThreadPoolExecutor(config.decode_threads, 'decode')
        settings = FrontEndSettings.from_config(config, first_epoch)
        return FrontEnd(settings, MonotonicClock(), engine, decoders, answer, announce)

    node = ServerNode(arguments.name, arguments.namespace, config, make_front_end)
    if config.autostart:
        node.trigger_configure()
        node.trigger_activate()
    try:
        yield [node], config.rclpy_executor
    finally:
        node.trigger_shutdown()
        node.destroy_node()


def main() -> int:
    """Run the server: ``ros2 run xinfer_ros server --ros-args --params-file FILE``."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
