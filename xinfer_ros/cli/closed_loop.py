# SPDX-License-Identifier: Apache-2.0
"""What commands share that drive an executor in a closed loop, over response delays."""

import argparse

from xinfer_ros.cli.arguments import file_path, whole_number
from xinfer_ros.robot.execution_mode import ExecutionMode

MODES = tuple(mode.value for mode in ExecutionMode)


def add_chunk_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how long chunks are and how often they are asked for."""
    parser.add_argument(
        '--horizon', type=whole_number(2, 1000), default=50, metavar='ROWS', help='rows of a chunk'
    )
    parser.add_argument(
        '--period-ms', type=whole_number(10, 10_000), default=180, metavar='MS',
        help='TE, least time between two requests [ms]',
    )  # fmt: skip


def add_delay_files(parser: argparse.ArgumentParser) -> None:
    """Add where the numbers and their picture go."""
    group = parser.add_argument_group('files')
    group.add_argument('--json', type=file_path, metavar='FILE.json', help='write the numbers')
    group.add_argument('--plot', type=file_path, metavar='FILE.png', help='draw them over delay')
