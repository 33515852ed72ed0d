# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer settings``."""

import argparse

from rich.table import Table

from xinfer_ros.cli.arguments import Commands
from xinfer_ros.cli.console import output_console
from xinfer_ros.config import ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.setting import describe

SETTINGS = {'server': ServerConfig, 'executor': ExecutorConfig, 'replay': ReplayConfig}


def add_commands(commands: Commands) -> None:
    """Add ``settings``."""
    settings = commands.add_parser(
        'settings', help='show every setting of a node with default, bounds and meaning'
    )
    settings.add_argument('node', choices=tuple(SETTINGS), help='which node')
    settings.set_defaults(run=_settings)


def _settings(arguments: argparse.Namespace) -> int:
    table = Table(title=f'Settings of the {arguments.node} node', title_justify='left')
    for name in ('key', 'default', 'allowed', 'meaning'):
        table.add_column(name, overflow='fold')
    for row in describe(SETTINGS[arguments.node]):
        table.add_row(*row)
    output_console().print(table)
    return 0
