# SPDX-License-Identifier: Apache-2.0
"""The arguments by which commands name a decision log, and how they open it."""

import argparse
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import file_path, whole_number

if TYPE_CHECKING:
    from rich.console import Console

    from xinfer_ros.sched.log_files import DecisionLog


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a log."""
    parser.add_argument(
        'log', type=file_path, metavar='LOG',
        help='the folder that a server was given as decision_log, or one file of it',
    )  # fmt: skip
    parser.add_argument(
        '--run', type=whole_number(1, 10**9), default=None, metavar='N', dest='log_run',
        help='which engine life in the folder; without it, the newest',
    )  # fmt: skip


def open_log(arguments: argparse.Namespace, console: 'Console') -> 'DecisionLog':
    """
    Return the log that is named, and print what it is and what is not in it.

    :raises ConfigError: if there is none
    """
    from xinfer_ros.sched.log_files import load_log

    log = load_log(arguments.log, arguments.log_run)
    header, run = log.header, '' if log.run is None else f', run {log.run}'
    console.print(
        f'{header.model} under {header.policy}, {header.date}, calibration '
        f'{header.calibration.name} of {header.calibration.device}{run}',
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    for remark in log.remarks():
        console.print(f'note: {remark}', markup=False, highlight=False, soft_wrap=True)
    return log
