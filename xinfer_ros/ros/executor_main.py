# SPDX-License-Identifier: Apache-2.0
"""The process of one executor node."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.ros.process import NodeArguments, Stop, node_settings, run_process
from xinfer_ros.ros.real_time import ask_for_real_time


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(ExecutorConfig, argv, 'executor', '/robot')
    return _session(arguments, config, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments, config: ExecutorConfig, stop: Stop
) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.executor_host import ExecutorHost

    if config.real_time:
        ask_for_real_time()
    host = ExecutorHost(stop)
    node = host.node(arguments.namespace, config, arguments.name)
    with host.running([config]):
        yield [node], config.rclpy_executor


def main() -> int:
    """Run an executor: ``ros2 run xinfer_ros executor --ros-args -r __ns:=/r1``."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
