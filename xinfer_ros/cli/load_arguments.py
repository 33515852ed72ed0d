# SPDX-License-Identifier: Apache-2.0
"""The arguments of every command that lets emulated robots loose on a live server."""

import argparse

from xinfer_ros.cli.arguments import number, whole_number
from xinfer_ros.fleet.bench_plan import MAX_LATENESS_MS, ROBOTS_PER_PROCESS
from xinfer_ros.robot.load_plan import IMAGES

MAX_X_MS = 10_000.0


def add_load(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of robots and of the processes that play them."""
    group = parser.add_argument_group('robots of a live server')
    group.add_argument(
        '--images', choices=IMAGES, default='jpeg',
        help='how pictures are sent; recordings of the other kind are converted before the start',
    )  # fmt: skip
    group.add_argument(
        '--bags', nargs='+', default=None, metavar='BAG',
        help='episodes whose pictures and joint states are sent, of any readable format (all '
        'shipped ones); robot i sends of episode i mod M',
    )  # fmt: skip
    group.add_argument(
        '--no-pace', action='store_true',
        help="ignore the server's wish for a later request, which executors honour",
    )  # fmt: skip
    group.add_argument(
        '--robots-per-process', type=whole_number(1, 256), default=ROBOTS_PER_PROCESS,
        metavar='N', help='robots that share a process of the load generator',
    )  # fmt: skip
    group.add_argument(
        '--max-lateness-ms', type=number(0.1, 1000.0), default=None, metavar='MS',
        help='no result if the load generator was later than this with more than 1 %% of its '
        f'requests (default: {MAX_LATENESS_MS:g}, or a tenth of TE if that is less) [ms]',
    )  # fmt: skip
    group.add_argument(
        '--x-ms', type=number(0.0, MAX_X_MS), default=None, metavar='X',
        help='model time: every request takes X ms, one after the other, without a network '
        '(model fixed:X)',
    )  # fmt: skip
    group.add_argument(
        '--attach', action='store_true',
        help='take the server that runs in this ROS domain instead of starting one',
    )  # fmt: skip
    group.add_argument('--verbose', action='store_true', help='show the log of every process')
