# SPDX-License-Identifier: Apache-2.0
"""Listens to the status of a fleet, from any host of its ROS graph."""

import os
import threading
from dataclasses import dataclass
from typing import Any

from xinfer_ros.core.clock import Clock
from xinfer_ros.msg import FleetStatus as FleetStatusMsg
from xinfer_ros.observe.fleet_status import FleetStatus
from xinfer_ros.ros import qos
from xinfer_ros.ros.fleet_messages import to_fleet_status
from xinfer_ros.ros.spun_node import SpunNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """
    A status that came.

    :param at_ns: when, this machine's monotonic clock [ns]
    """

    at_ns: int
    status: FleetStatus


class TopListener:
    """
    Keeps the newest status.

    :param topic: where a server publishes it
    :param clock: of this machine
    """

    def __init__(self, topic: str, clock: Clock) -> None:
        self._topic, self._clock = topic, clock
        self._heard: Heard | None = None
        self._news = threading.Event()
        self._spun = SpunNode('xinfer_top')
        self._spun.listen(FleetStatusMsg, topic, self._take, qos.COMMAND)
        self._spun.run()

    def _take(self, message: Any) -> None:
        self._heard = Heard(at_ns=self._clock.now_ns(), status=to_fleet_status(message))
        self._news.set()

    def newest(self) -> Heard | None:
        """Return the newest status, None before the first."""
        return self._heard

    def wait(self, seconds: float) -> Heard | None:
        """Return the newest status as soon as there is one, None if none comes in time."""
        self._news.wait(seconds)
        return self._heard

    def advice(self) -> str:
        """Return why nothing may be heard, and what to try."""
        domain = os.environ.get('ROS_DOMAIN_ID') or '0'
        reach = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'SUBNET'
        if why := self._spun.not_understood(self._topic):
            return f'{self._topic} is not understood ({why}); is its server of another version?'
        others = self._spun.node.count_publishers(self._topic)
        if others:
            return f'{self._topic} has {others} publishers, but no message came yet'
        return (
            f'nobody publishes {self._topic} in ROS_DOMAIN_ID={domain} with '
            f'ROS_AUTOMATIC_DISCOVERY_RANGE={reach}; does a server run there? `xinfer fleet` says '
            'its domain in its first line, and servers of other hosts need SUBNET on both sides'
        )

    def close(self) -> None:
        """Leave the graph."""
        self._spun.close()
