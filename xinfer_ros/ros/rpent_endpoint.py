# SPDX-License-Identifier: Apache-2.0
"""RPent's VLA endpoint over the fleet's server of VLA models."""

import asyncio
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.brain.gateway.patience import at_most
from xinfer_ros.brain.rpent import Prediction, Rows
from xinfer_ros.brain.rpent_server import RpentServer
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.chunk import Answer, check_rows, columns_by_name
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.ros.relay import Relay
from xinfer_ros.ros.rpent_robot import Resolve, RpentRobot

PATIENCE_S = 100.0  # RPent gives a call up after 120 s
PAUSE_S = 0.2
SERVICE_S = 5.0
# what passes by itself, or with a new session
PASSING = (
    Reason.NOT_READY, Reason.ENGINE_RESTARTED, Reason.UNKNOWN_SESSION, Reason.EXPIRED, Reason.HUNG,
    Reason.REJECTED_NO_SLOT, Reason.REJECTED_CAPACITY,
)  # fmt: skip


class RpentEndpoint:
    """
    Answers calls in the loop of the gateway, and asks the server in rclpy's thread.

    Calls at once are different robots of the fleet; a call waits while all are taken.

    :param node: the brain node
    :param relay: into rclpy's thread
    :param config: settings
    :param host: whose loop serves
    :raises ConfigError: if the address is not free
    """

    def __init__(self, node: Node, relay: Relay, config: BrainConfig, host: GatewayHost) -> None:
        self._relay, self._config, self._host = relay, config, host
        self._robots = [RpentRobot(node, number, config) for number in range(config.rpent_calls)]
        self._free: asyncio.Queue[RpentRobot] = asyncio.Queue()
        for robot in self._robots:
            self._free.put_nowait(robot)
        self._server = RpentServer(self._predict)
        host.run(self._server.start(config.host, config.rpent_port))
        where = f'http://{config.host}:{self._server.port}'
        node.get_logger().info(f'RPent reaches its VLA at --vla-endpoint {where}')

    async def _predict(self, call: Prediction) -> Rows:
        robot = await self._free.get()
        try:
            return await at_most(self._chunk(robot, call), PATIENCE_S)
        except asyncio.TimeoutError:
            text = f'no chunk within {PATIENCE_S:g} s'
            raise Rejected(Reason.EXPIRED, text) from None
        finally:
            self._free.put_nowait(robot)

    async def _chunk(self, robot: RpentRobot, call: Prediction) -> Rows:
        """Return a chunk, whatever restarts meanwhile."""
        while True:
            try:
                return self._rows(await self._ask(robot, call))
            except Rejected as refusal:
                if refusal.reason is Reason.UNKNOWN_SESSION:
                    await self._register(robot)
                elif refusal.reason not in PASSING:
                    raise
            await asyncio.sleep(PAUSE_S)

    async def _register(self, robot: RpentRobot) -> None:
        refusal = await self._in_ros(robot.register, SERVICE_S)
        if refusal is not None:
            raise refusal
        while not robot.can_ask():
            await asyncio.sleep(PAUSE_S)

    async def _ask(self, robot: RpentRobot, call: Prediction) -> Answer:
        if not robot.can_ask():
            await self._register(robot)
        seconds = 2 * self._config.rpent_budget_s + PAUSE_S
        found = await self._in_ros(lambda resolve: robot.ask(call, resolve), seconds)
        if isinstance(found, Rejected):
            raise found
        assert isinstance(found, Answer)
        return found

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

    def _rows(self, found: Answer) -> Rows:
        """Return the rows of an answer in RPent's order of joints."""
        if found.reason is not Reason.OK:
            raise Rejected(found.reason, found.detail)
        names = self._config.rpent_joint_names
        check_rows(found.rows, len(names))
        return found.rows[:, columns_by_name(names, found.joint_names)]

    def close(self) -> None:
        """Stop serving."""
        self._host.run(self._server.close())
