# SPDX-License-Identifier: Apache-2.0
"""Settings that give joints values by name: ``left_*=0.5``, ``*_wrist=-1.2:1.2``."""

import fnmatch
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import nearest

Values = npt.NDArray[np.float64]


def joints_matching(patterns: Sequence[str], joint_names: Sequence[str]) -> tuple[str, ...]:
    """
    Return the joints that at least one pattern names, in the order of the joints.

    A pattern may name none: one list of patterns serves robots with and without grippers.

    :param patterns: names, or shell patterns such as ``*_gripper``; case matters
    """
    return tuple(
        name
        for name in joint_names
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    )


def values_by_joint(
    entries: Sequence[str],
    joint_names: Sequence[str],
    setting_name: str,
    *,
    default: float = math.nan,
) -> Values:
    """
    Return the value that a setting gives to each joint; later entries win.

    :param entries: ``JOINT=VALUE`` each, JOINT a name or a pattern
    :param setting_name: where the entries stand, for error texts
    :param default: of joints that no entry names
    :returns: ``(num_joints,)`` float64
    :raises ConfigError: if an entry names no joint or holds no finite number
    """
    values = np.full(len(joint_names), default)
    for entry, columns, text in _entries(entries, joint_names, setting_name, 'VALUE'):
        values[columns] = _number(text, entry, setting_name, 'VALUE')
    return values


def ranges_by_joint(
    entries: Sequence[str], joint_names: Sequence[str], setting_name: str
) -> Values:
    """
    Return the range that a setting gives to each joint; later entries win.

    :param entries: ``JOINT=LOWER:UPPER`` each, JOINT a name or a pattern
    :param setting_name: where the entries stand, for error texts
    :returns: ``(2, num_joints)`` float64, lower ends and upper ends; NaN where no entry says any
    :raises ConfigError: if an entry names no joint or holds no range that a joint can move in
    """
    ranges = np.full((2, len(joint_names)), math.nan)
    form = 'LOWER:UPPER'
    for entry, columns, text in _entries(entries, joint_names, setting_name, form):
        lower_text, _, upper_text = text.partition(':')
        lower = _number(lower_text, entry, setting_name, form)
        upper = _number(upper_text, entry, setting_name, form)
        if not lower < upper:
            raise ConfigError(f'{setting_name} has {entry!r}; LOWER must be less than UPPER')
        ranges[:, columns] = [[lower], [upper]]
    return ranges


def _entries(
    entries: Sequence[str], joint_names: Sequence[str], setting_name: str, form: str
) -> Iterator[tuple[str, list[int], str]]:
    """Yield each entry, the columns of its joints and the text of its value."""
    for entry in entries:
        pattern, equals, text = entry.partition('=')
        if not equals:
            raise ConfigError(f'{setting_name} has {entry!r}; allowed: JOINT={form}')
        matching = joints_matching((pattern,), joint_names)
        columns = [column for column, name in enumerate(joint_names) if name in matching]
        if not columns:
            raise ConfigError(
                f'{setting_name} has {entry!r}, but no joint matches {pattern!r}; '
                f'{nearest(pattern, list(joint_names))}'
            )
        yield entry, columns, text


def _number(text: str, entry: str, setting_name: str, form: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f'{setting_name} has {entry!r}; allowed: JOINT={form}, finite numbers')
    return value
