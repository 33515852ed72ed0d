# SPDX-License-Identifier: Apache-2.0
"""The brain node: episodes of LLM brains, and skills of robots, as ROS actions."""

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from xinfer_ros.brain.gateway.host import GatewayHost
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.ros.brain_robots import BrainRobots
from xinfer_ros.ros.diagnostics import brain_diagnostics
from xinfer_ros.ros.episode_server import EpisodeServer
from xinfer_ros.ros.parameters import as_overrides, declare, steady_clock
from xinfer_ros.ros.relay import Relay
from xinfer_ros.ros.skill_server import SkillServer

DIAGNOSE_S = 1.0
LAST_SPINS, LAST_SPIN_S = 20, 0.01
SPINS_PER_GOAL = 4  # its last state, its result, and what comes in between


class BrainNode(Node):
    """
    Shows a running gateway to ROS.

    :param name: node name
    :param namespace: node namespace
    :param config: settings
    :param host: runs the gateway, which has started
    :param clock: the steady clock
    :param make_endpoint: makes the VLA endpoint for RPent, given the node; None: there is none
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        config: BrainConfig,
        host: GatewayHost,
        clock: Clock,
        make_endpoint: Callable[[Node, Relay], Any] | None,
    ) -> None:
        super().__init__(name, namespace=namespace, parameter_overrides=as_overrides(config))
        declare(self, config)
        self._host = host
        self._relay = Relay(self)
        robots = BrainRobots(self)
        self._episodes = EpisodeServer(self, host, self._relay, robots, config)
        self._skills = SkillServer(self, robots, clock)
        self._endpoint = None if make_endpoint is None else make_endpoint(self, self._relay)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.create_timer(DIAGNOSE_S, self._diagnose, clock=steady_clock())
        self.get_logger().info(f'agents reach the gateway at {host.base_url("EPISODE")}')

    def _diagnose(self) -> None:
        self._host.status(lambda status: self._relay.post(lambda: self._publish(status)))

    def _publish(self, status: dict[str, Any]) -> None:
        self._diagnostics.publish(brain_diagnostics(self, status))

    def close(self) -> None:
        """End every goal and remove the topics."""
        if self._endpoint is not None:
            self._endpoint.close()
        self._episodes.end_all()
        self._skills.end_all()
        num_goals = self._episodes.num_goals + self._skills.num_goals
        for _ in range(LAST_SPINS + SPINS_PER_GOAL * num_goals):  # so that the results leave
            if self.executor is not None:
                self.executor.spin_once(timeout_sec=LAST_SPIN_S)
        self._relay.close()
        self._episodes.close()
        self._skills.close()
        self.destroy_node()
