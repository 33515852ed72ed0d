# SPDX-License-Identifier: Apache-2.0
"""What every command shares that starts real processes: isolation, server settings, their log."""

import argparse
import os
from pathlib import Path

import yaml
from rich.console import Console

from xinfer_ros.errors import ConfigError

# of the nodes, of the engine, of the warnings what the engine has to say at its start, and where
# the live page is, or why there is none
_SHOWN = (
    '[ERROR]', '[FATAL]', 'CRITICAL', ' ERROR: ', '[engine] WARNING: ', '.http_server] ',
)  # fmt: skip


def isolate(*, attach: bool = False) -> None:
    """
    Keep a demo on this machine, in a domain of its own, unless the user has said where.

    :param attach: whether a server that runs already is wanted, which is where ROS says
    """
    if attach:
        return
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 101))


def add_server(parser: argparse.ArgumentParser, flag: str = '--set') -> None:
    """
    Add the arguments that say which server is started.

    :param flag: by which its settings are given
    """
    parser.add_argument(
        '--params-file', action='append', type=Path, default=[], metavar='FILE',
        help='ROS parameter file, stronger than the shipped ones; repeat for more',
    )  # fmt: skip
    parser.add_argument(
        '--model', default='', metavar='NAME|FOLDER', help='model to serve; xinfer models'
    )
    parser.add_argument(
        flag, action='append', default=[], metavar='KEY=VALUE', dest='server_set',
        help='a setting of the server, stronger than every file; repeat for more; '
        'xinfer settings server',
    )  # fmt: skip


def server_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """
    Return what the command line says of the server; values as YAML reads them, as in files.

    :raises ConfigError: if a pair is none
    """
    found: dict[str, object] = {'model': arguments.model} if arguments.model else {}
    for pair in arguments.server_set:
        key, equals, text = pair.partition('=')
        if not equals or not key:
            raise ConfigError(f'--set {pair}: KEY=VALUE is needed')
        try:
            found[key] = yaml.safe_load(text) if text else ''
        except yaml.YAMLError:
            raise ConfigError(f'--set {pair}: the value is not YAML; quote it as text') from None
    return found


class LogLines:
    """
    Shows what matters of the processes' output; keeps the rest for a failure.

    :param console: where it is shown
    :param verbose: whether everything matters
    """

    def __init__(self, console: Console, verbose: bool) -> None:
        self._console, self._verbose = console, verbose
        self._kept: list[str] = []

    def take(self, line: str) -> None:
        """Take in a line; from any thread."""
        self._kept = [*self._kept[-60:], line]
        if self._verbose or any(mark in line for mark in _SHOWN):
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def print_kept(self) -> None:
        """Show the last lines."""
        for line in self._kept:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
