# SPDX-License-Identifier: Apache-2.0
"""Real graphs: every test has a domain of its own, and nothing leaves this machine."""

import itertools
import os
from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no rclpy: neither the wheels nor a sourced ROS 2')

from .graph import Graph

_DOMAINS = itertools.count(os.getpid())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder."""
    for item in items:
        if 'test/ros/' in item.path.as_posix():
            item.add_marker('ros')


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Give a graph on its own domain; at the end every node and process of it is gone."""
    graph = Graph(1 + next(_DOMAINS) % 101)
    try:
        yield graph
    finally:
        graph.close()
