# SPDX-License-Identifier: Apache-2.0
"""The process of one executor node."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.robot.control_loop import ControlLoop
from xinfer_ros.ros.process import NodeArguments, Stop, node_settings, run_process


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(ExecutorConfig, argv, 'executor', '/robot')
    return _session(arguments, config, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments, config: ExecutorConfig, stop: Stop
) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.executor_node import ExecutorNode

    node = ExecutorNode(arguments.namespace, config, arguments.name)
    loop = ControlLoop(MonotonicClock(), [node.control_tick], lambda: stop.request(1))
    loop.start()
    try:
        yield [node], config.rclpy_executor
    finally:
        loop.close()
        node.destroy_node()


def main() -> int:
    """Run an executor: ``ros2 run xinfer_ros executor --ros-args -r __ns:=/r1``."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
