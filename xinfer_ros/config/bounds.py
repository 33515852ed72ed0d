# SPDX-License-Identifier: Apache-2.0
"""What several nodes have in common."""

import ipaddress

MAX_BUDGET_S = 60.0
RCLPY_EXECUTOR = 'rclpy executor: events costs a third a message, single is the proven one'


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host name or address."""
    try:
        return ipaddress.ip_address(host.strip('[]')).is_loopback
    except ValueError:
        return host.lower() == 'localhost'


def is_loopback_header(header: str) -> bool:
    """Return whether a Host header names this machine, with a port or without."""
    name, colon, port = header.rpartition(':')
    return is_loopback(name if colon and port.isdecimal() else header)
