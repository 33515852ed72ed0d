# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies by name."""

from xinfer_ros.errors import ConfigError
from xinfer_ros.sched.fifo import Fifo
from xinfer_ros.sched.policy import SchedulingPolicy

POLICIES = {'fifo': Fifo}


def make_policy(name: str) -> SchedulingPolicy:
    """
    Return a new scheduling policy.

    :raises ConfigError: if there is none of this name
    """
    if name not in POLICIES:
        raise ConfigError(f'scheduling policy {name} is not known; known: {", ".join(POLICIES)}')
    return POLICIES[name]()
