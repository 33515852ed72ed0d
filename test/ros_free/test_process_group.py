# SPDX-License-Identifier: Apache-2.0
"""Command lines of the processes of a fleet."""

import os
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.ros.node_list import NodeSpec
from xinfer_ros.ros.params_file import ros_arguments
from xinfer_ros.ros.process_group import command

plain = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
    st.text(st.characters(codec='utf-8', exclude_categories=('Cc', 'Cs')), max_size=120),
)


def test_node_with_a_name_is_renamed_and_gets_files_and_values() -> None:
    spec = NodeSpec(
        executable='server',
        name='xinfer_server',
        namespace='/fleet',
        files=(Path('/etc/a.yaml'), Path('b.yaml')),
        parameters={'model': 'echo', 'max_robots': 3, 'autostart': True, 'lease_s': 2.5},
        respawn=True,
    )
    assert command(spec) == [
        sys.executable, '-m', 'xinfer_ros.ros.server_main', '--ros-args',
        '-r', '__node:=xinfer_server', '-r', '__ns:=/fleet',
        '--params-file', '/etc/a.yaml', '--params-file', 'b.yaml',
        '-p', 'model:="echo"', '-p', 'max_robots:=3',
        '-p', 'autostart:=true', '-p', 'lease_s:=2.5',
    ]  # fmt: skip


def test_process_of_several_nodes_keeps_their_names_and_its_own_arguments() -> None:
    """A remapped name would give all nodes of the process the same one."""
    spec = NodeSpec(
        executable='robots', arguments=('--robot', 'r0=bag@0.0', '--robot', 'r1=bag@0.7')
    )
    assert command(spec) == [
        sys.executable, '-m', 'xinfer_ros.ros.robots_main',
        '--robot', 'r0=bag@0.0', '--robot', 'r1=bag@0.7', '--ros-args',
    ]  # fmt: skip


@settings(deadline=None, derandomize=True)
@given(st.one_of(plain, st.lists(st.text('abc_', min_size=1, max_size=12), max_size=30)))
def test_value_comes_out_as_it_went_in(value: object) -> None:
    """LC-01: a value is neither cut nor turned into another type on its way to the node."""
    line = command(NodeSpec(executable='replay', name='replay', parameters={'value': value}))
    assert ros_arguments(line)[1] == {'value': value}


@pytest.mark.parametrize(
    'value',
    [
        'put the ' + 'very ' * 30 + 'small cube away',
        '/data/' + 'my recordings of last week/' * 5 + 'bag',
        [f'left_joint_number_{index}' for index in range(14)],
        'first line\nsecond line',
        'pick: the cube',
        '7',
        'true',
        '',
        "it's",
        '{a}',
        '# no comment',
    ],
)
def test_long_and_odd_values_come_out_as_they_went_in(value: object) -> None:
    """LC-01: an instruction, a path with blanks, a list of joints; text that looks otherwise."""
    line = command(NodeSpec(executable='replay', name='replay', parameters={'value': value}))
    assert yaml.safe_load(line[-1].partition(':=')[2]) == value


@pytest.mark.parametrize('executable', ['server', 'robots', 'replay', 'executor'])
def test_module_of_every_executable_exists(executable: str) -> None:
    module = command(NodeSpec(executable=executable))[2]
    package = Path(__file__).parents[2]
    assert (package / (module.replace('.', os.sep) + '.py')).is_file()
