# SPDX-License-Identifier: Apache-2.0
"""Quality of service of every topic, and who offers one that can't match ours."""

from dataclasses import dataclass
from typing import Any

from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)

OBSERVATION = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
CHUNK = QoSProfile(depth=8, reliability=ReliabilityPolicy.RELIABLE)
BUDGET = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
STATE = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
# results of many goals may leave at once, as a node ends; the usual depth keeps ten of them
RESULTS = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
EVENT = QoSProfile(depth=4, reliability=ReliabilityPolicy.BEST_EFFORT)
SENSOR = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# several drivers may share the topic, each with some of the joints; all are polled once a tick
JOINTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A publisher that can never reach one of our subscriptions."""

    topic: str
    peer: str
    why: str


def mismatches(node: Any, topic: str, ours: QoSProfile) -> list[Mismatch]:
    """Return the publishers of a topic whose quality of service does not suit our subscription."""
    found = []
    for info in node.get_publishers_info_by_topic(topic):
        verdict, why = qos_check_compatible(info.qos_profile, ours)
        if verdict == QoSCompatibility.ERROR:
            peer = f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            found.append(Mismatch(topic=topic, peer=peer, why=why.strip()))
    return found
