# SPDX-License-Identifier: Apache-2.0
"""RPent's VLA endpoint over the fleet's server of VLA models."""

import asyncio
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.brain.rpent import Prediction, Rows
from xinfer_ros.brain.rpent_calls import PAUSE_S, RpentCalls
from xinfer_ros.brain.rpent_server import RpentServer
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.chunk import Answer, check_rows, columns_by_name
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.ros.relay import Relay
from xinfer_ros.ros.rpent_robot import Resolve, RpentRobot

SERVICE_S = 5.0


class AskingRobot:
    """
    Asks the server for one robot: it is awaited in the loop of the gateway, and asks in rclpy's
    thread.

    :param robot: its session
    :param relay: into rclpy's thread
    :param config: settings
    """

    def __init__(self, robot: RpentRobot, relay: Relay, config: BrainConfig) -> None:
        self._robot, self._relay, self._config = robot, relay, config

    async def chunk(self, call: Prediction) -> Rows:
        """Return the rows of an answer in RPent's order of joints."""
        if not self._robot.can_ask():
            await self._register()
        seconds = 2 * self._config.rpent_budget_s + PAUSE_S
        found = await self._in_ros(lambda resolve: self._robot.ask(call, resolve), seconds)
        if isinstance(found, Rejected):
            raise found
        assert isinstance(found, Answer)
        if found.reason is not Reason.OK:
            raise Rejected(found.reason, found.detail)
        names = self._config.rpent_joint_names
        check_rows(found.rows, len(names))
        return found.rows[:, columns_by_name(names, found.joint_names)]

    def forget(self) -> None:
        """Ask for a session anew before the next call."""
        self._robot.forget()

    async def _register(self) -> None:
        refusal = await self._in_ros(self._robot.register, SERVICE_S)
        if refusal is not None:
            raise refusal
        for _ in range(round(SERVICE_S / PAUSE_S)):
            if self._robot.can_ask():
                return
            await asyncio.sleep(PAUSE_S)
        raise Rejected(Reason.NOT_READY, 'the server does not listen to this robot yet')

    async def _in_ros(self, begin: Callable[[Resolve], None], seconds: float) -> Any:
        """
        Return what something in rclpy's thread comes to.

        :raises Rejected: EXPIRED if nothing comes
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def give(value: Any) -> None:
            if not future.done():  # else nobody waits any more
                future.set_result(value)

        def resolve(value: Any) -> None:
            loop.call_soon_threadsafe(give, value)

        self._relay.post(lambda: begin(resolve))
        done, _ = await asyncio.wait({future}, timeout=seconds)
        if not done:
            raise Rejected(Reason.EXPIRED, f'the server has not answered within {seconds:g} s')
        return future.result()


class RpentEndpoint:
    """
    Answers calls in the loop of the gateway.

    :param node: the brain node
    :param relay: into rclpy's thread
    :param config: settings
    :param host: whose loop serves
    :raises ConfigError: if the address is not free
    """

    def __init__(self, node: Node, relay: Relay, config: BrainConfig, host: GatewayHost) -> None:
        self._host = host
        robots = [
            AskingRobot(RpentRobot(node, number, config), relay, config)
            for number in range(config.rpent_calls)
        ]
        self._server = RpentServer(RpentCalls(robots).predict)
        host.run(self._server.start(config.host, config.rpent_port))
        where = f'http://{config.host}:{self._server.port}'
        node.get_logger().info(f'RPent reaches its VLA at --vla-endpoint {where}')

    def close(self) -> None:
        """Stop serving."""
        self._host.run(self._server.close())
