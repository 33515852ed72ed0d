# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer explain``: why a request was protected, deferred or late."""

import argparse

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, whole_number
from xinfer_ros.cli.console import output_console
from xinfer_ros.cli.decision_log import add_log, open_log
from xinfer_ros.errors import ConfigError

SHOWN = 20


def add_commands(commands: Commands) -> None:
    """Add ``explain``."""
    parser = commands.add_parser(
        'explain',
        help='tell the life of a request: why it was protected, deferred or late',
        description=(
            'Runs the scheduler of a decision log again and tells what happened to one request,\n'
            'with the slack and the predictions behind every decision. Without a request it\n'
            'lists the late ones, each with where its time went.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer explain decisions                        # who was late, the newest last\n'
            '  xinfer explain decisions 57\n'
            '  xinfer explain decisions --robot r0 --latest-late\n'
            '  xinfer sim --robots 18 --decision-log simulated     # of a simulated round too'
        ),
        formatter_class=ExampleFormatter,
    )
    add_log(parser)
    parser.add_argument(
        'request', type=whole_number(0, 2**62), nargs='?', default=None, metavar='REQUEST',
        help='number of a request, as the list has it',
    )  # fmt: skip
    parser.add_argument('--robot', default='', metavar='NAME', help='late requests of this robot')
    parser.add_argument(
        '--latest-late', action='store_true', help='tell of the newest late request'
    )
    parser.add_argument(
        '--last', type=whole_number(1, 100_000), default=SHOWN, metavar='N',
        help='how many late requests are listed',
    )  # fmt: skip
    parser.set_defaults(run=_explain)


def _explain(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.late_requests import late_requests, late_table
    from xinfer_ros.fleet.request_story import request_story

    if arguments.request is not None and (arguments.robot or arguments.latest_late):
        raise ConfigError('give a REQUEST, or --robot and --latest-late, not both')
    console = output_console()
    log = open_log(arguments, console)
    key = arguments.request
    if key is None:
        found = late_requests(log, arguments.robot)
        if not arguments.latest_late or not found.late:
            console.print(late_table(found, arguments.last).rich())
            return 0
        key = found.late[-1].key
    for line in request_story(log, key):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0
