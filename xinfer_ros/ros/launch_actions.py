# SPDX-License-Identifier: Apache-2.0
"""Entries of a node list as actions of ``ros2 launch``."""

from typing import Any

from launch_ros.actions import LifecycleNode, Node

from xinfer_ros.ros.node_list import NodeSpec


def node_action(spec: NodeSpec, **extra: Any) -> Node:
    """
    Return a node list's entry as a launch action.

    :param extra: further arguments of the action, such as ``condition``
    """
    kind = LifecycleNode if spec.lifecycle else Node
    named = {'name': spec.name, 'namespace': spec.namespace} if spec.name else {}
    return kind(
        package='xinfer_ros',
        executable=spec.executable,
        arguments=list(spec.arguments),
        parameters=[*map(str, spec.files), *([dict(spec.parameters)] if spec.parameters else [])],
        respawn=spec.respawn,
        respawn_delay=0.5,
        output='screen',
        **named,
        **extra,
    )
