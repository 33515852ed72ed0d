# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer replay-decisions``: whether a scheduler decides as it did."""

import argparse
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import Commands, ExampleFormatter
from xinfer_ros.cli.console import StatusLine, output_console
from xinfer_ros.cli.decision_log import add_log, open_log

if TYPE_CHECKING:
    from xinfer_ros.fleet.decision_replay import Agreement


def add_commands(commands: Commands) -> None:
    """Add ``replay-decisions``."""
    parser = commands.add_parser(
        'replay-decisions',
        help='run the scheduler again on a decision log: it must decide the same, unit by unit',
        description=(
            'Tells a scheduler of the same policy, settings and calibration everything that the\n'
            "log's was told, at the same times, and compares every answer: which units start,\n"
            'whose requests end, when a robot is asked back; and where a part of the log ends,\n'
            'every bit of the state.\n'
            'Exit code 0 if all agrees, 1 at the first difference, which is shown with the calls\n'
            'before it.\n'
            'Another policy cannot be tried on a log: what it decided would change when units\n'
            'end and robots ask. xinfer sim --policy A,B compares policies.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer fleet --robots 4 --duration 10 --set decision_log=decisions\n'
            '  xinfer replay-decisions decisions            # the newest run in the folder\n'
            '  xinfer replay-decisions decisions --run 3\n'
            '  xinfer replay-decisions decisions/decisions-0003-000002.xlog   # one part of it'
        ),
        formatter_class=ExampleFormatter,
    )
    add_log(parser)
    parser.set_defaults(run=_replay)


def _replay(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.decision_replay import check_agreement

    console = output_console()
    log = open_log(arguments, console)
    with StatusLine(console) as status:
        found = check_agreement(log, lambda calls: status.tell(f'{calls:,} calls agree'))
    for line in _lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0 if found.difference is None else 1


def _lines(found: 'Agreement') -> list[str]:
    from xinfer_ros.fleet.decision_report import call_line

    states = f', {found.states} boundaries between parts' if found.states else ''
    agreed = f'{found.calls:,} calls in {found.seconds:.1f} s, {found.units:,} units{states}'
    difference = found.difference
    if difference is None:
        return [f'it decides the same: {agreed}']
    where = f'part {difference.part}, {difference.after_ns / 1e6:.3f} ms after the first call'
    if difference.step is None:
        what = ['the state at the head of the part is not the one that the part before ends with']
    else:
        what = [
            f'  the log     {call_line(difference.step.call)}',
            f'  decided now {call_line(difference.step.answered)}',
        ]
    return [
        f'it decides otherwise in {where}, after {agreed} that agree',
        *(f'              {call_line(call)}' for call in difference.before),
        *what,
    ]
