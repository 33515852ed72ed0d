# SPDX-License-Identifier: Apache-2.0
"""The process of the brain node."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from xinfer_ros.brain.gateway.choice import make_controller
from xinfer_ros.brain.gateway.gateway import Gateway
from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.ros.node_list import BRAIN_NAME, SERVER_NAMESPACE
from xinfer_ros.ros.process import NodeArguments, Stop, node_settings, run_process


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(BrainConfig, argv, BRAIN_NAME, SERVER_NAMESPACE)
    return _session(arguments, config, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments, config: BrainConfig, stop: Stop
) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.brain_node import BrainNode

    clock = MonotonicClock()

    def failed() -> None:
        logging.getLogger('brain').critical('the gateway has failed; see above')
        stop.request(1)

    def make() -> Gateway:
        return Gateway(config, clock, lambda: make_controller(config), failed)

    host = GatewayHost(make, config, clock, failed)
    host.start()
    try:
        node = BrainNode(
            arguments.name, arguments.namespace, config, host, clock, _endpoint_of(config, host)
        )
        try:
            yield [node], 'single'
        finally:
            node.close()
    finally:
        host.close()


def _endpoint_of(config: BrainConfig, host: GatewayHost) -> Any:
    """Return what makes the VLA endpoint for RPent, None if none is asked for."""
    if not config.rpent_port:
        return None
    from xinfer_ros.ros.rpent_endpoint import RpentEndpoint

    return lambda node, relay: RpentEndpoint(node, relay, config, host)


def main() -> int:
    """Run the brain node: ``ros2 run xinfer_ros brain --ros-args --params-file FILE``."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
