# SPDX-License-Identifier: Apache-2.0
"""The command line of a node: what it says has an effect, or the start stops."""

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.ros.params_file import resolve, ros_arguments

from .server_settings import SERVER, error_of, server_file


def test_command_line_is_stronger_than_every_file(write) -> None:
    """LC-01: -p values."""
    path = write(server_file('max_robots: 8'))
    files, values = ros_arguments(
        ['--ros-args', '--params-file', str(path), '-p', 'max_robots:=9', '-p', 'lease_s:=3']
    )
    assert files == [path]
    got = resolve(ServerConfig, SERVER, files, values)
    assert (got.max_robots, got.lease_s) == (9, 3.0)


def test_wrong_value_on_the_command_line_is_told_as_such() -> None:
    """LC-01: -p values."""
    _, values = ros_arguments(['-p', 'max_bach:=8'])
    text = error_of(resolve, ServerConfig, SERVER, [], values)
    assert 'command line: unknown key max_bach' in text


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('loop:=false', False),
        ('rate:=2', 2),
        ('rate:=0.5', 0.5),
        ('bag:=transfer_cube_1', 'transfer_cube_1'),
        ('bag:="7"', '7'),
        ('names:=[a, b]', ['a', 'b']),
        ('replay:rate:=2', 2),
    ],
)
def test_command_line_values_are_yaml(text: str, value: object) -> None:
    """LC-01: -p values, with or without the node's name."""
    for flag in ('-p', '--param'):
        assert list(ros_arguments(['--ros-args', flag, text])[1].values()) == [value]


@pytest.mark.parametrize('argument', ['max_robots=9', 'max_robots', '', 'max_robots:9', 'a:=[1'])
def test_malformed_command_line_value_is_refused(argument: str) -> None:
    """LC-01: -p values."""
    assert f'-p {argument}' in error_of(ros_arguments, ['--ros-args', '-p', argument])


def test_command_line_without_arguments_is_fine() -> None:
    """LC-01: `ros2 run xinfer_ros server` with nothing behind it."""
    assert ros_arguments([]) == ([], {})
