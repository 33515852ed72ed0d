# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer settings``: of nodes, and of scheduling policies."""

import argparse
import inspect
import re
from dataclasses import fields

from rich.table import Table

from xinfer_ros.cli.arguments import Commands
from xinfer_ros.cli.console import output_console
from xinfer_ros.config import BrainConfig, ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.config.working_set import WorkingSetConfig
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.settings import POLICIES
from xinfer_ros.setting import describe

NODES = {
    'server': ServerConfig,
    'executor': ExecutorConfig,
    'replay': ReplayConfig,
    'brain': BrainConfig,
}
CONTROLLERS = {'working_set': WorkingSetConfig}  # of the brain node
DEVICE = 'paper'  # whose defaults are shown: some of them depend on the device
_PARAMETER = re.compile(r':param (\w+): (.*?)(?=\n:|\n\n|\Z)', re.DOTALL)


def add_commands(commands: Commands) -> None:
    """Add ``settings``."""
    settings = commands.add_parser(
        'settings',
        help='show every setting of a node, or of a scheduling policy',
        description='Shows every setting of a node with default, bounds and meaning, or those of '
        'a scheduling policy, which a server takes in policy_settings, or of a controller, which '
        'the brain node takes in controller_settings.',
        epilog='examples: xinfer settings server; xinfer settings foresight',
    )
    known = (*NODES, *CONTROLLERS, *POLICIES)
    settings.add_argument(
        'of', choices=known, metavar='NODE|CONTROLLER|POLICY', help=', '.join(known)
    )
    settings.set_defaults(run=_settings)


def _settings(arguments: argparse.Namespace) -> int:
    described = NODES | CONTROLLERS
    if arguments.of in described:
        kind = 'node' if arguments.of in NODES else 'controller'
        title = f'Settings of the {arguments.of} {kind}'
        table = _table(title, 'key', 'default', 'allowed', 'meaning')
        for row in describe(described[arguments.of]):
            table.add_row(*row)
    else:
        title = f'Settings of the scheduling policy {arguments.of}, on the device {DEVICE}'
        table = _table(title, 'key', 'default', 'meaning')
        for key, default, meaning in _policy_rows(arguments.of):
            table.add_row(key, default, meaning)
    output_console().print(table)
    return 0


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify='left')
    for name in columns:
        table.add_column(name, overflow='fold')
    return table


def _policy_rows(name: str) -> list[tuple[str, str, str]]:
    """Return (key, default, meaning); meanings stand in the docstrings of the settings."""
    kind = POLICIES[name]
    meanings: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        text = inspect.cleandoc(owner.__doc__ or '')
        meanings |= {key: ' '.join(words.split()) for key, words in _PARAMETER.findall(text)}
    defaults = kind.of(load_calibration(DEVICE))
    return [
        (field.name, _shown(getattr(defaults, field.name)), meanings.get(field.name, ''))
        for field in fields(defaults)
    ]


def _shown(value: object) -> str:
    return f'{value:g}' if isinstance(value, float) else str(value)
