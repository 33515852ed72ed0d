# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer``."""

import os
import signal
import sys
from collections.abc import Sequence

from xinfer_ros.cli import (
    ablate,
    audit,
    bench,
    brain,
    calibrate,
    compare,
    decision_cost,
    episodes,
    erc,
    explain,
    fleet,
    models,
    modes,
    physical,
    plan,
    replay_decisions,
    settings,
    sim,
    tables,
    top,
    trace,
    tune,
)
from xinfer_ros.cli.arguments import OneLineParser
from xinfer_ros.errors import XinferError


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run a command.

    :param argv: arguments; those of the process if None
    :returns: exit code: 0 good, 1 a bad run, 2 a mistake that the user can mend
    """
    arguments = _parser().parse_args(argv)
    # Ctrl-C even where a script has left it ignored, a supervisor, a terminal that closes
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        code: int = arguments.run(arguments)
    except XinferError as error:
        print(f'xinfer: {error}', file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(
            f'xinfer: {error.name} is not installed; pip install "xinfer-ros[all]" has everything '
            'that a server and a replay need',
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:
        # the reader has gone, as `head` does; nothing is left to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    return code


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog='xinfer', description='Serve fleets of robots that run vision-language-action models.'
    )
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for group in (
        fleet,
        bench,
        top,
        episodes,
        settings,
        models,
        calibrate,
        audit,
        explain,
        trace,
        replay_decisions,
        ablate,
        sim,
        erc,
        compare,
        tune,
        tables,
        decision_cost,
        modes,
        physical,
        brain,
        plan,
    ):
        group.add_commands(commands)
    return parser
