# SPDX-License-Identifier: Apache-2.0
"""How tests share the cores: real ROS graphs wait most of their time, everything else computes."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put every real graph into one worker, first, and each other module into any worker."""
    items.sort(key=lambda item: not _is_graph(item))
    for item in items:
        group = 'graphs' if _is_graph(item) else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))


def _is_graph(item: pytest.Item) -> bool:
    return 'test/ros/' in item.path.as_posix()
