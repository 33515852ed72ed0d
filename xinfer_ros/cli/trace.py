# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer trace``: a decision log as a timeline in a browser."""

import argparse
from pathlib import Path

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path
from xinfer_ros.cli.console import StatusLine, output_console
from xinfer_ros.cli.decision_log import add_log, open_log


def add_commands(commands: Commands) -> None:
    """Add ``trace``."""
    parser = commands.add_parser(
        'trace',
        help='write a decision log as a trace that Perfetto and Chrome show',
        description=(
            'Runs the scheduler of a decision log again and writes what happened as a trace:\n'
            'every lane with its units (requests, robots, protected or not), every robot with\n'
            'its requests from arrival to answer, their deadlines and the decisions about them\n'
            'with the slack behind each, arrows from a request to the one that waits for its\n'
            'sake, and how many requests wait, run and are protected.\n'
            'Open it in ui.perfetto.dev or in chrome://tracing; both show local files.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer trace decisions --output trace.json\n'
            '  xinfer sim --robots 18 --decision-log simulated && xinfer trace simulated'
        ),
        formatter_class=ExampleFormatter,
    )
    add_log(parser)
    parser.add_argument(
        '--output', type=file_path, default=Path('trace.json'), metavar='FILE.json',
        help='where the trace goes',
    )  # fmt: skip
    parser.set_defaults(run=_trace)


def _trace(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.records import output_file
    from xinfer_ros.fleet.run_events import Decided, Submitted, UnitEnded
    from xinfer_ros.fleet.trace_file import write_trace

    output_file(arguments.output, '.json')
    console = output_console()
    log = open_log(arguments, console)
    with StatusLine(console) as status:
        status.tell('writing the trace')
        count = write_trace(log, arguments.output)
    told = count.run_events
    console.print(
        f'{arguments.output}: {count.trace_events:,} events of {told[Submitted]:,} requests, '
        f'{told[UnitEnded]:,} units and {told[Decided]:,} decisions; open it in ui.perfetto.dev',
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    return 0
