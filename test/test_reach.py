# SPDX-License-Identifier: Apache-2.0
"""What a process loads with its first module, however deep, read from the source."""

from pathlib import Path

import pytest
from source import PACKAGE, Source, reach, read_sources

PRODUCT = read_sources(Path(__file__).parents[1] / PACKAGE)


@pytest.mark.parametrize(
    ('module', 'forbidden'),
    [
        ('engine.front_end', {'torch', 'rclpy'}),
        ('engine.link', {'torch', 'rclpy'}),
        ('engine.process', {'rclpy'}),
        ('ros.executor_node', {'torch', 'cv2'}),
        ('ros.server_node', {'torch'}),
        ('ros.node_list', {'torch', 'rclpy'}),
        ('ros.params_file', {'torch', 'rclpy'}),
        ('ros.process_group', {'torch', 'rclpy'}),
        ('fleet.run', {'torch', 'rclpy'}),
        ('fleet.bench_run', {'torch', 'rclpy', 'cv2'}),
        ('ros.emulated_main', {'torch'}),
        ('robot.emulated_fleet', {'torch', 'rclpy', 'yaml'}),
        ('robot.chunk_executor', {'torch', 'rclpy', 'yaml'}),
    ],
)
def test_process_does_not_load_what_it_must_not_hold(module: str, forbidden: set[str]) -> None:
    """The front end holds no CUDA, the executor node is small; counted through all imports."""
    tops = {name.split('.')[0] for name in reach(PRODUCT, f'{PACKAGE}.{module}')}
    assert tops & {'dataclasses', 'collections'}
    assert tops & forbidden == set()


def test_reach_goes_through_our_own_modules() -> None:
    sources = [
        Source('ros/a.py', 'def f():\n    from xinfer_ros.core.b import thing'),
        Source('core/b.py', 'from . import c'),
        Source('core/c.py', 'import torch.nn'),
        Source('core/__init__.py', 'import json'),
    ]
    assert {'torch.nn', 'json', f'{PACKAGE}.core.c'} <= reach(sources, f'{PACKAGE}.ros.a')
