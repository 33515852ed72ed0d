# SPDX-License-Identifier: Apache-2.0
"""The server node: a managed node around the front end."""

from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.answer_router import AnswerRouter, Door
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.status import ServerStatus
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ServerState
from xinfer_ros.observe.fleet_view import FleetView
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.observation_wire import Received
from xinfer_ros.ros.parameters import as_overrides, declare, steady_clock
from xinfer_ros.ros.robot_port import RobotPort, mismatches
from xinfer_ros.ros.server_reporter import ServerReporter
from xinfer_ros.srv import RegisterRobot

HOUSEKEEPING_S = 1.0
MakeFrontEnd = Callable[[AnswerRouter, Callable[[ServerStatus], None]], FrontEnd]
OpenDoors = Callable[[FrontEnd, AnswerRouter], list[Door]]


class ServerNode(LifecycleNode):
    """
    Serves robots while active.

    Configure starts the engine process, activate opens the registration, deactivate refuses new
    requests, cleanup ends the engine.

    :param name: node name
    :param namespace: node namespace
    :param config: settings
    :param make: makes the front end, given what publishes answers and the server's status
    :param view: observes that front end
    :param open_doors: opens the other doors of a front end; answers go through the router
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        config: ServerConfig,
        make: MakeFrontEnd,
        view: FleetView,
        open_doors: OpenDoors = lambda front_end, router: [],
    ) -> None:
        super().__init__(name, namespace=namespace, parameter_overrides=as_overrides(config))
        declare(self, config)
        self._make_front_end, self._open_doors = make, open_doors
        self._steady, self._view = MonotonicClock(), view
        self._front_end: FrontEnd | None = None
        self._router = AnswerRouter()
        self._doors: list[Door] = []

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Start the engine process and the topics of the server."""
        self._state_pub = self.create_publisher(ServerState, 'server_state', qos.STATE)
        self._reporter = ServerReporter(self, self._view, self._steady)
        self._service = self.create_service(RegisterRobot, 'register_robot', self._register)
        self._housekeeping = self.create_timer(
            HOUSEKEEPING_S, self._keep_house, clock=steady_clock()
        )
        self._front_end = self._make_front_end(self._router, self._announce)
        self._front_end.set_active(False)
        self._doors = self._open_doors(self._front_end, self._router)
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
            while self._doors:
                self._doors.pop().close()
            self._router.sweep(tuple)
            self.destroy_timer(self._housekeeping)
            self.destroy_service(self._service)
            self.destroy_publisher(self._state_pub)
            self._reporter.close()
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
            return response
        if replaced is not None:
            self._router.leave(replaced)
        if not self._router.knows(robot):
            self._router.join(robot, RobotPort(self, robot, self._observe, self._set_budget))
            self.get_logger().info(f'robot {request.robot_id} registered')
        response.reason, response.session = int(Reason.OK), robot.session
        response.epoch, response.lease_ns = self._served.status().epoch, self._served.lease_ns
        convert.fill_contract(response, contract)
        return response

    def _observe(self, robot: Robot, read: Callable[[], Received]) -> None:
        arrival_ns = self._steady.now_ns()
        try:
            received = read()
        except ValueError as error:  # nobody to answer
            self._reporter.warn('unreadable', f'{robot.registration.robot_id}: {error}')
            return
        if received.refusal is not None:
            self._served.refuse(robot, received.observation, received.refusal, arrival_ns)
            return
        if received.observation.request_id % 4 == 1:  # the wall clock costs a tenth of a request
            robot.clock_skew.add(received.stamp_ns, self.get_clock().now().nanoseconds)
        self._served.submit(robot, received.observation, arrival_ns)

    def _set_budget(self, robot: Robot, message: Any) -> None:
        try:
            self._served.set_budget(robot, message.budget_ns)
        except Rejected as refusal:
            text = f'budget of {robot.registration.robot_id}: {refusal}'
            self._reporter.warn(f'budget {refusal.reason.name}', text)

    def _announce(self, status: ServerStatus) -> None:
        self._state_pub.publish(convert.from_status(status))

    def _keep_house(self) -> None:
        gone = self._served.forget_silent()
        self._router.sweep(self._served.robots)
        self._reporter.publish(gone, mismatches(self._router.outlets()))
