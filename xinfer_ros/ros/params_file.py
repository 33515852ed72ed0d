# SPDX-License-Identifier: Apache-2.0
"""Parameter files of ROS 2, read strictly: a file has an effect, or the start stops."""

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import settings_from

SettingsT = TypeVar('SettingsT')
ROS_OWN = ('use_sim_time', 'start_type_description_service', 'qos_overrides', 'autostart_node')
NEAR = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """
    The parameters that a file has for one node or pattern of nodes.

    :param pattern: node name with namespace, such as ``/fleet/xinfer_server`` or ``/**/executor``
    :param values: parameter values by dotted name
    """

    pattern: str
    values: Mapping[str, object]

    def matches(self, node: str) -> bool:
        """Return whether the section is for a node, given by its name with namespace."""
        text = ''
        for token in self.pattern.strip('/').split('/'):
            text += {'**': r'(/[^/]+)*', '*': r'/[^/]+'}.get(token, '/' + re.escape(token))
        return re.fullmatch(text, node) is not None


def sections(path: Path) -> list[Section]:
    """
    Return the sections of a parameter file.

    :raises ConfigError: if it can't be read or is no parameter file
    """
    try:
        tree = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f'{path}: {error.strerror}') from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f'{path}: no valid YAML: {" ".join(str(error).split())}') from error
    found = list(_walk(tree if tree is not None else {}, '', path))
    if not found:
        raise ConfigError(
            f'{path}: no ros__parameters in it; expected: <node>: ros__parameters: <key>: <value>'
        )
    return found


def _walk(tree: Any, prefix: str, path: Path) -> Iterator[Section]:
    if not isinstance(tree, dict):
        raise ConfigError(
            f'{path}: {prefix or "the file"} holds {tree!r}, expected a mapping; keys and values '
            'belong below ros__parameters, with two underscores'
        )
    for key, value in tree.items():
        if key == 'ros__parameters':
            if not isinstance(value, dict):
                raise ConfigError(
                    f'{path}: ros__parameters of {prefix} is {value!r}, not a mapping'
                )
            yield Section(pattern=prefix or '/**', values=dict(_flat(value, '')))
        else:
            yield from _walk(value, f'{prefix}/{str(key).strip("/")}', path)


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def check_sections(path: Path, nodes: Sequence[str], *, complete: bool = False) -> None:
    """
    Refuse a file that has nothing for any of the nodes, or a section with a misspelt node name.

    :param path: the parameter file
    :param nodes: names with namespace of the nodes that are started with it
    :param complete: whether these are all nodes of the system, so that every section must fit one
    :raises ConfigError: names the section and the nearest node
    """
    found = sections(path)
    names = [node.rsplit('/', 1)[1] for node in nodes]
    for section in found:
        if any(section.matches(node) for node in nodes):
            continue
        name = section.pattern.rsplit('/', 1)[1]
        misspelt = name not in names and difflib.get_close_matches(name, names, 1, NEAR)
        if misspelt or (complete and name in names):
            raise ConfigError(_misdirected(path, section.pattern, nodes))
    if not any(section.matches(node) for section in found for node in nodes):
        raise ConfigError(_misdirected(path, found[0].pattern, nodes))


def _misdirected(path: Path, pattern: str, nodes: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(pattern, nodes, n=1, cutoff=0.0)
    return f'{path}: section {pattern} is for no node started here; did you mean {nearest[0]}?'


def files_for(node: str, paths: Sequence[Path]) -> list[Path]:
    """Return the files that have a section for a node."""
    return [p for p in paths if any(section.matches(node) for section in sections(p))]


def resolve(
    kind: type[SettingsT],
    node: str,
    paths: Sequence[Path],
    overrides: Mapping[str, object],
) -> SettingsT:
    """
    Return the settings of a node: defaults, then files in order, then overrides; the last wins.

    :param kind: the settings' class of config/
    :param node: name with namespace
    :param paths: parameter files
    :param overrides: values given on the command line
    :raises ConfigError: names file, key, what is allowed and the nearest valid name
    """
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for path in paths:
        for section in sections(path):
            if section.matches(node):
                values |= section.values
                origins |= dict.fromkeys(section.values, f'{path} ({section.pattern})')
    values |= overrides
    origins |= dict.fromkeys(overrides, 'command line')
    own = {name: v for name, v in values.items() if name.split('.')[0] not in ROS_OWN}
    return settings_from(kind, own, origins)


def ros_arguments(argv: Sequence[str]) -> tuple[list[Path], dict[str, object]]:
    """
    Return the parameter files and ``-p`` values of a command line of ROS 2.

    :raises ConfigError: if a ``-p`` is not ``name:=value``
    """
    paths, values = [], {}
    for flag, value in itertools.pairwise([*argv, '']):
        if flag == '--params-file':
            paths.append(Path(value))
        elif flag in ('-p', '--param'):
            name, separator, text = value.partition(':=')
            if not separator:
                raise ConfigError(f'-p {value}: expected name:=value')
            try:
                values[name.rsplit(':', 1)[-1]] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ConfigError(f'-p {value}: no valid YAML value') from error
    return paths, values
