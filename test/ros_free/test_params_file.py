# SPDX-License-Identifier: Apache-2.0
"""Parameter files: what a file says has an effect, or the start stops."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.config import BrainConfig, ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.ros.params_file import (
    Section,
    check_sections,
    files_for,
    resolve,
    ros_arguments,
    sections,
)

from .server_settings import SERVER, error_of, server_file

BRAIN = '/fleet/xinfer_brain'
SHIPPED = Path(__file__).parents[2] / 'config'
COMMON = """
/**/executor:
  ros__parameters:
    response_budget_s: 0.2
    commitment_steps: 4
    instruction: everybody
/r1/executor:
  ros__parameters:
    commitment_steps: 5
/r2/executor:
  ros__parameters: {response_budget_s: 0.3, instruction: second}
"""
MORE = """
/r3:
  executor:
    ros__parameters:
      commitment_steps: 7
/r1/executor:
  ros__parameters: {response_budget_s: 1}
"""


def test_misspelt_key_stops_the_start_and_the_nearest_one_is_named(write) -> None:
    """LC-01: `max_bach: 8`; no setting of ours is as near as `max_robots` is to `max_robot`."""
    path = write(server_file('max_bach: 8'))
    text = error_of(resolve, ServerConfig, SERVER, [path], {})
    assert 'unknown key max_bach' in text
    assert str(path) in text
    assert 'max_robots' in text
    path = write(server_file('max_robot: 8'))
    assert 'did you mean max_robots?' in error_of(resolve, ServerConfig, SERVER, [path], {})


@pytest.mark.parametrize(
    'section',
    [
        '/fleet/xinfer_serve',
        '/fleet/server',
        '/flet/xinfer_server',
        'xinfer_server',
        '/r1/executor',
    ],
)
def test_file_for_another_node_or_namespace_is_refused(write, section: str) -> None:
    """LC-01: a file keyed to another node or namespace."""
    path = write(f'{section}:\n  ros__parameters: {{max_robots: 8}}\n')
    text = error_of(check_sections, path, [SERVER])
    assert section in text
    assert f'did you mean {SERVER}?' in text
    assert str(path) in text


def test_nearest_node_is_named_among_several(write) -> None:
    """LC-01."""
    path = write('/r2/exekutor:\n  ros__parameters: {commitment_steps: 3}\n')
    nodes = [SERVER, '/r1/executor', '/r1/replay', '/r2/executor', '/r2/replay']
    assert 'did you mean /r2/executor?' in error_of(check_sections, path, nodes)


def test_misspelt_node_is_refused_beside_sections_that_fit(write) -> None:
    """LC-01: one good section does not hide the misspelt one."""
    path = write(COMMON + '/r1/exekutor:\n  ros__parameters: {commitment_steps: 3}\n')
    assert '/r1/exekutor' in error_of(check_sections, path, [SERVER, '/r1/executor'])


def test_section_for_a_node_of_another_package_is_left_to_it(write) -> None:
    path = write(COMMON + '/controller_manager:\n  ros__parameters: {update_rate: 100}\n')
    check_sections(path, [SERVER, '/r1/executor'])


def test_common_values_and_those_of_one_robot_add_up_and_the_last_wins(write) -> None:
    """LC-01: common defaults plus overrides for /r1–/r3: the effective values equal the table."""
    files = [write(COMMON, 'common.yaml'), write(MORE, 'more.yaml')]
    table = {
        '/r0/executor': (0.2, 4, 'everybody'),
        '/r1/executor': (1.0, 5, 'everybody'),
        '/r2/executor': (0.3, 4, 'second'),
        '/r3/executor': (0.2, 7, 'everybody'),
    }
    for node, expected in table.items():
        got = resolve(ExecutorConfig, node, files, {})
        assert (got.response_budget_s, got.commitment_steps, got.instruction) == expected
        assert got.minimum_period_s == ExecutorConfig().minimum_period_s


def test_order_of_the_files_decides(write) -> None:
    """LC-01: the last wins, a pattern over a name too."""
    first = write('/r1/executor:\n  ros__parameters: {commitment_steps: 1}\n', 'a.yaml')
    second = write('/**:\n  ros__parameters: {commitment_steps: 2}\n', 'b.yaml')
    for files, steps in (([first, second], 2), ([second, first], 1)):
        assert resolve(ExecutorConfig, '/r1/executor', files, {}).commitment_steps == steps


def test_whole_number_for_a_double_is_that_double(write) -> None:
    """LC-01: 100 for a double is 100.0."""
    path = write(server_file('lease_s: 100'))
    lease_s = resolve(ServerConfig, SERVER, [path], {}).lease_s
    assert lease_s == 100.0
    assert type(lease_s) is float


@pytest.mark.parametrize('text', ['abs', 'abs(-1)', '__import__("os")', 'lambda: 0', '1+1'])
def test_text_of_a_setting_stays_text(write, text: str) -> None:
    """SE-02: nothing that a file or the command line says is evaluated."""
    path = write(server_file(f"websocket_prompt: '{text}'"))
    assert resolve(ServerConfig, SERVER, [path], {}).websocket_prompt == text
    _, values = ros_arguments(['-p', f"websocket_prompt:='{text}'"])
    assert resolve(ServerConfig, SERVER, [], values).websocket_prompt == text


@pytest.mark.parametrize(
    'content',
    [
        b'a: [1, 2',
        b'a:\n\t- b',
        b'\xff\xfe\x00a',
        b'a: b: c',
        b'- 1\n- 2',
        b'just words',
        b'42',
        b'a: *nowhere',
        b'a: 1\n---\nb: 2',
        b'/r1/executor: 5',
        b'/r1/executor: [1, 2]',
        b'/r1/executor:\n  ros__parameters: 5',
        b'/r1/executor:\n  ros__parameters: [1, 2]',
        b'/r1/executor:\n  ros__parameters: commitment_steps',
        b'/r1/executor:\n  ros__parameters: {instruction: 2024-02-31}',
    ],
)
def test_unreadable_file_is_refused_by_its_name(write, content: bytes) -> None:
    """LC-01: whatever is wrong with a file, the user is told which one, and sees no traceback."""
    path = write(content)
    assert str(path) in error_of(sections, path)


@pytest.mark.parametrize('content', ['', '{}', '# only a comment', '/r1/executor: {}'])
def test_file_without_parameters_is_refused_and_the_form_is_shown(write, content: str) -> None:
    """LC-01: a file without ros__parameters would have no effect."""
    text = error_of(sections, write(content))
    assert 'no ros__parameters in it; expected: <node' in text


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    """LC-01."""
    assert 'nowhere.yaml: No such file' in error_of(sections, tmp_path / 'nowhere.yaml')
    assert str(tmp_path) in error_of(sections, tmp_path)


@pytest.mark.parametrize(
    'tag',
    [
        '!!python/object/apply:os.system ["touch {canary}"]',
        '!!python/object/apply:builtins.open ["{canary}", "w"]',
        '!!python/object/new:os.system ["touch {canary}"]',
        '!!python/name:os.system ""',
        '!!python/module:os ""',
        '!mine {{a: 1}}',
    ],
)
def test_yaml_tags_run_nothing(write, tmp_path: Path, tag: str) -> None:
    """SE-01, LC-01: a tag in a file or on the command line is refused, and no canary appears."""
    canary = tmp_path / 'canary'
    value = tag.format(canary=canary)
    assert 'no valid YAML' in error_of(sections, write(f'/r1/executor: {{a: {value}}}'))
    assert 'no valid YAML' in error_of(ros_arguments, ['-p', f'model:={value}'])
    assert not canary.exists()


@pytest.mark.parametrize(
    ('pattern', 'node', 'matches'),
    [
        ('/fleet/xinfer_server', '/fleet/xinfer_server', True),
        ('fleet/xinfer_server', '/fleet/xinfer_server', True),
        ('/**', '/fleet/xinfer_server', True),
        ('/**/executor', '/r1/executor', True),
        ('/**/executor', '/executor', True),
        ('/**/executor', '/a/b/executor', True),
        ('/*/executor', '/r1/executor', True),
        ('/*/executor', '/a/b/executor', False),
        ('/*/executor', '/executor', False),
        ('/r1/*', '/r1/replay', True),
        ('/r1/**', '/r1/a/b', True),
        ('/r1', '/r1/executor', False),
        ('/r1/executor', '/r10/executor', False),
        ('/r1/exec', '/r1/executor', False),
        ('/r./executor', '/r1/executor', False),
    ],
)
def test_patterns_match_as_in_ros(pattern: str, node: str, matches: bool) -> None:
    assert Section(pattern=pattern, values={}).matches(node) is matches


names = st.from_regex(r'[a-z][a-z0-9_]{0,6}', fullmatch=True)


@settings(deadline=None, derandomize=True)
@given(st.lists(names, min_size=1, max_size=4), st.integers(0, 3))
def test_name_matches_itself_and_its_patterns(tokens: list[str], place: int) -> None:
    node = '/' + '/'.join(tokens)
    assert Section(pattern=node, values={}).matches(node)
    assert Section(pattern='/**', values={}).matches(node)
    starred = list(tokens)
    starred[place % len(tokens)] = '*'
    assert Section(pattern='/' + '/'.join(starred), values={}).matches(node)
    assert not Section(pattern=node + '/x', values={}).matches(node)


def test_settings_of_ros_itself_are_left_to_ros(write) -> None:
    path = write(server_file('use_sim_time: true\n    qos_overrides: {/tf: {depth: 5}}'))
    assert resolve(ServerConfig, SERVER, [path], {}) == ServerConfig()


def test_nested_keys_get_dots_and_are_not_dropped(write) -> None:
    path = write(server_file('model: {name: tiny}'))
    assert 'unknown key model.name' in error_of(resolve, ServerConfig, SERVER, [path], {})


def test_empty_value_and_empty_mapping_are_not_dropped(write) -> None:
    """LC-01: what a file says has an effect, or the start stops."""
    for value in ('', '{}'):
        path = write(server_file(f'max_robots: {value}'))
        assert 'max_robots' in error_of(resolve, ServerConfig, SERVER, [path], {})


def test_wrong_value_is_told_with_file_section_key_and_bounds(write) -> None:
    path = write('/**:\n  ros__parameters: {max_robots: 0}\n')
    text = error_of(resolve, ServerConfig, SERVER, [path], {})
    assert f'{path} (/**): max_robots is 0 (int)' in text
    assert 'from 1 to 256' in text


def test_node_gets_the_files_that_are_for_it(write) -> None:
    robots, server = write(COMMON, 'r.yaml'), write(server_file('max_robots: 3'), 's.yaml')
    assert files_for(SERVER, [robots, server]) == [server]
    assert files_for('/r9/executor', [robots, server]) == [robots]
    assert files_for('/r9/replay', [robots, server]) == []


def test_shipped_files_are_good() -> None:
    others = ('robot_', 'prometheus_')  # for one robot's file, and for somebody else's program
    files = [path for path in sorted(SHIPPED.glob('*.yaml')) if not path.name.startswith(others)]
    nodes = [SERVER, '/r0/executor', '/r0/replay', BRAIN]
    assert [path.name for path in files] == [
        'brain.yaml', 'executor.yaml', 'fleet.yaml', 'server.yaml',
    ]  # fmt: skip
    for path in files:
        check_sections(path, nodes)
    kinds = (ServerConfig, ExecutorConfig, ReplayConfig, BrainConfig)
    for kind, node in zip(kinds, nodes, strict=True):
        assert isinstance(resolve(kind, node, files, {}), kind)
    assert files_for(SERVER, files)
    assert files_for('/r0/executor', files)
