# SPDX-License-Identifier: Apache-2.0
"""The server node: a managed node around the front end."""

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.status import ServerStatus
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ServerState
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.diagnostics import server_diagnostics
from xinfer_ros.ros.parameters import as_overrides, declare, steady_clock
from xinfer_ros.ros.robot_port import RobotPort
from xinfer_ros.srv import RegisterRobot

HOUSEKEEPING_S = 1.0
MakeFrontEnd = Callable[
    [Callable[[Robot, Answer], None], Callable[[ServerStatus], None]], FrontEnd
]


class ServerNode(LifecycleNode):
    """
    Serves robots while active.

    Configure starts the engine process, activate opens the registration, deactivate refuses new
    requests, cleanup ends the engine.

    :param name: node name
    :param namespace: node namespace
    :param config: settings
    :param make: makes the front end, given what publishes answers and the server's status
    """

    def __init__(
        self, name: str, namespace: str, config: ServerConfig, make: MakeFrontEnd
    ) -> None:
        super().__init__(name, namespace=namespace, parameter_overrides=as_overrides(config))
        declare(self, config)
        self._make_front_end = make
        self._steady = MonotonicClock()
        self._front_end: FrontEnd | None = None
        self._ports: dict[Robot, RobotPort] = {}

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Start the engine process and the topics of the server."""
        self._state_pub = self.create_publisher(ServerState, 'server_state', qos.STATE)
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._service = self.create_service(RegisterRobot, 'register_robot', self._register)
        self._housekeeping = self.create_timer(
            HOUSEKEEPING_S, self._keep_house, clock=steady_clock()
        )
        self._front_end = self._make_front_end(self._answer, self._announce)
        self._front_end.set_active(False)
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Open the registration."""
        self._served.set_active(True)
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Refuse registrations and observations; what is under way is answered."""
        self._served.set_active(False)
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Answer everything under way, end the engine process, remove the topics."""
        if self._front_end is not None:
            self._front_end.close()
            self._front_end = None
            while self._ports:
                self._ports.popitem()[1].close()
            self.destroy_timer(self._housekeeping)
            self.destroy_service(self._service)
            self.destroy_publisher(self._state_pub)
            self.destroy_publisher(self._diagnostics_pub)
        return TransitionCallbackReturn.SUCCESS

    on_shutdown = on_cleanup

    @property
    def _served(self) -> FrontEnd:
        assert self._front_end is not None, 'the node is not configured'
        return self._front_end

    def _register(self, request: Any, response: Any) -> Any:
        try:
            robot, replaced, contract = self._served.register(convert.to_registration(request))
        except Rejected as refusal:
            response.reason, response.detail = int(refusal.reason), refusal.detail
            text = f'robot {request.robot_id!r} refused: {refusal}'
            self.get_logger().warning(text, throttle_duration_sec=5.0)
            return response
        if replaced is not None:
            self._ports.pop(replaced).close()
        if robot not in self._ports:
            self._ports[robot] = RobotPort(self, robot, self._observe, self._set_budget)
            self.get_logger().info(f'robot {request.robot_id} registered')
        response.reason, response.session = int(Reason.OK), robot.session
        response.epoch, response.lease_ns = self._served.status().epoch, self._served.lease_ns
        convert.fill_contract(response, contract)
        return response

    def _observe(self, robot: Robot, message: Any) -> None:
        arrival_ns = self._steady.now_ns()
        try:
            stamp_ns = convert.stamp_ns(message)
            observation = convert.to_observation(message)
        except Rejected as refusal:
            self._served.refuse(robot, convert.address(message), refusal, arrival_ns)
            return
        robot.clock_skew.add(stamp_ns, self.get_clock().now().nanoseconds)
        self._served.submit(robot, observation, arrival_ns)

    def _set_budget(self, robot: Robot, message: Any) -> None:
        try:
            self._served.set_budget(robot, message.budget_ns)
        except Rejected as refusal:
            self.get_logger().warning(f'budget of {robot.registration.robot_id}: {refusal}')

    def _answer(self, robot: Robot, answer: Answer) -> None:
        port = self._ports.get(robot)
        if port is not None:
            port.publish(convert.from_answer(answer))

    def _announce(self, status: ServerStatus) -> None:
        self._state_pub.publish(convert.from_status(status))

    def _keep_house(self) -> None:
        for robot in self._served.forget_silent():
            self._ports.pop(robot).close()
            self.get_logger().warning(f'robot {robot.registration.robot_id} is silent: removed')
        mismatched = [m for port in self._ports.values() for m in port.mismatches()]
        answered, robots = self._served.tally.answered(), self._served.robots()
        status = self._served.status()
        self._diagnostics_pub.publish(
            server_diagnostics(self, status, answered, robots, mismatched)
        )
