# SPDX-License-Identifier: Apache-2.0
"""What a node process is told on its command line."""

from pathlib import Path

import pytest

from xinfer_ros.config import ReplayConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.process import node_arguments, node_settings


@pytest.mark.parametrize('namespace', ['arm', '/a b', '/left/', '/1', '//arm', ''])
def test_namespace_that_ros_does_not_take_is_refused_with_its_form(namespace: str) -> None:
    """LC-01: rclpy would end with a traceback."""
    with pytest.raises(ConfigError, match=f"namespace '{namespace}': allowed are .* as in /arm"):
        node_arguments(['-r', f'__ns:={namespace}'], 'replay', '/robot')


def test_node_takes_its_own_namespace_a_given_one_or_none() -> None:
    assert node_arguments([], 'replay', '/robot').full_name == '/robot/replay'
    assert node_arguments(['__ns:=/cell_1/arm'], 'replay', '').full_name == '/cell_1/arm/replay'
    assert node_arguments([], 'replay', '').full_name == '/replay'


def test_misspelt_ros_parameters_is_refused_with_the_right_spelling(tmp_path: Path) -> None:
    """LC-01: one underscore where two belong."""
    path = tmp_path / 'arm.yaml'
    path.write_text('/r1/replay:\n  ros_parameters: {bag: a}')
    with pytest.raises(ConfigError, match='ros__parameters, with two underscores'):
        node_settings(
            ReplayConfig, ['-r', '__ns:=/r1', '--params-file', str(path)], 'replay', '/robot'
        )
