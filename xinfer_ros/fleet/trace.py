# SPDX-License-Identifier: Apache-2.0
"""Workloads by name, and those that a file of recorded budgets tells of."""

import json
from pathlib import Path
from typing import Any

from xinfer_ros.core.budget_sequence import load_budget_sequences
from xinfer_ros.errors import ConfigError
from xinfer_ros.sim.robot_time import ROBOT_TIME, RobotTimeWorkload
from xinfer_ros.sim.workload import Workload, make_workload

NEEDED = (
    'budgets in ms are needed, one a line or a JSON list, or the sequences that '
    '`xinfer episodes budgets` writes'
)


def load_workload(name: str) -> Workload | RobotTimeWorkload:
    """
    Return a workload: by its name, one in robot time too, ``constant:MS``, or ``trace:FILE``.

    :raises ConfigError: if there is none, or its file tells of no budgets
    """
    if name in ROBOT_TIME:
        return ROBOT_TIME[name]
    kind, _, file = name.partition(':')
    return make_workload(name, _traces_ms(Path(file)) if kind == 'trace' and file else ())


def _traces_ms(path: Path) -> tuple[tuple[float, ...], ...]:
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(f'trace {path} cannot be read: {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise ConfigError(f'trace {path} is no text; {NEEDED}') from error
    if text.lstrip().startswith('{'):
        found = load_budget_sequences(path)
        return tuple(sequence.budgets_ms for sequence in found.sequences)
    return (_budgets_ms(path, text),)


def _budgets_ms(path: Path, text: str) -> tuple[float, ...]:
    try:
        if text.lstrip().startswith('['):
            values: list[Any] = json.loads(text)
            budgets = tuple(float(value) for value in values)
        else:
            budgets = tuple(float(line) for line in text.splitlines() if line.strip())
    except (TypeError, ValueError) as error:
        raise ConfigError(f'trace {path}: {error}; {NEEDED}') from error
    if not budgets:
        raise ConfigError(f'trace {path} is empty; {NEEDED}')
    return budgets
