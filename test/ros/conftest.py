# SPDX-License-Identifier: Apache-2.0
"""Real graphs: every test has a domain of its own, and nothing leaves this machine."""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

pytest.importorskip('rclpy', reason='no rclpy: neither the wheels nor a sourced ROS 2')

from .graph import Graph

DOMAINS = 101  # up to here, the ports of a domain are no ephemeral ones


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder."""
    for item in items:
        if 'test/ros/' in item.path.as_posix():
            item.add_marker('ros')


def _claim(domain: int) -> IO[str] | None:
    """Return what holds a domain for this test; None if somebody else on this machine has it."""
    lock = (Path(tempfile.gettempdir()) / f'xinfer_ros_test_domain_{domain}').open('a')
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket(type=socket.SOCK_DGRAM) as port:
            port.bind(('', 7410 + 250 * domain))  # of the first participant, whoever it is
    except OSError:
        lock.close()
        return None
    return lock


@pytest.fixture
def domain() -> Iterator[int]:
    """Give a domain that neither another test nor anybody else on this machine has."""
    for number in range(DOMAINS):
        domain = 1 + (os.getpid() + number) % DOMAINS
        lock = _claim(domain)
        if lock is not None:
            with lock:
                yield domain
            return
    raise AssertionError(f'each of the domains 1 to {DOMAINS} is in use')


@pytest.fixture
def graph(domain: int) -> Iterator[Graph]:
    """Give a graph on its own domain; at the end every node and process of it is gone."""
    graph = Graph(domain)
    try:
        yield graph
    finally:
        graph.close()
