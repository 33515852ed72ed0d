# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer tune``: settings for the operator's own workload."""

import argparse
from pathlib import Path

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path, whole_number
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import add_files, add_simulation, simulation_plan, words
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import ABOUT, parse_criterion


def add_commands(commands: Commands) -> None:
    """Add ``tune``."""
    criteria = '\n'.join(f'  {name:16} {about}' for name, about in ABOUT)
    parser = commands.add_parser(
        'tune',
        help='search scheduling policy and settings for a workload; write them for a server',
        description=(
            'Searches, on the simulated device, the settings with which each scheduling policy\n'
            'serves the largest fleet of a workload, or a given fleet best. What is found is\n'
            'judged on rounds that it was not tuned on. The best one is printed as a parameter\n'
            'file of the server. The same seed goes the same way, as far as the time allows.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer tune --workload trace:budgets.txt --calibration my.json --out server.yaml\n'
            '  xinfer tune --workload parcel --robots 16 --policy xinfer,foresight --minutes 2\n'
            '  xinfer tune --workload constant:120 --json tune.json --plot tune.png\n\n'
            f'criteria:\n{criteria}\n\n' + words()
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--robots', type=whole_number(1, 4096), default=None, metavar='N',
        help='the fleet to serve best (default: search for the largest)',
    )  # fmt: skip
    parser.add_argument(
        '--max-robots', type=whole_number(1, 4096), default=32, metavar='N',
        help='largest fleet that is tested',
    )  # fmt: skip
    parser.add_argument('--criterion', default='paper', metavar='NAME', help='see below')
    parser.add_argument(
        '--minutes', type=_minutes, default=5.0, metavar='M',
        help='time for all, the judging at the end as far as it can be foreseen [min]',
    )  # fmt: skip
    parser.add_argument(
        '--out', type=file_path, default=None, metavar='FILE.yaml',
        help='write the recommended configuration of the server',
    )  # fmt: skip
    add_simulation(parser, policy='all')
    add_files(parser, plot='draw the capacity of every policy')
    parser.set_defaults(run=_tune, warm_up=10.0, end=70.0)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1440.0:
        raise argparse.ArgumentTypeError(f'{text!r}: minutes, more than 0 and up to 1440')
    return value


def _tune(arguments: argparse.Namespace) -> int:
    from xinfer_ros.core.clock import MonotonicClock
    from xinfer_ros.fleet.compare import Arena
    from xinfer_ros.fleet.records import output_file, output_files, write_records
    from xinfer_ros.fleet.rounds import RoundPool
    from xinfer_ros.fleet.tune import Tuner
    from xinfer_ros.fleet.tune_report import server_yaml, tune_plot, tune_table

    plan = simulation_plan(arguments)
    arena = Arena(
        workload=plan.workload,
        calibration=plan.calibration,
        world=plan.world,
        robots=arguments.robots or 1,
        criterion=parse_criterion(arguments.criterion),
        max_robots=max(arguments.max_robots, arguments.robots or 1),
    )
    output_files(arguments.json, arguments.plot)
    if arguments.out is not None:
        output_file(arguments.out, '.yaml')
    console = output_console()
    with RoundProgress('rounds', console) as progress, RoundPool(arguments.jobs) as pool:
        tuner = Tuner(
            pool,
            arena,
            robots=arguments.robots,
            round=plan.round,
            seeds=plan.seeds,
            clock=MonotonicClock(),
            starting=progress.starting,
            done=progress.done,
            tell=progress.say,
        )
        found = tuner.run(plan.policies, arguments.minutes)
    records = [record for record, _ in found]
    console.print(tune_table(records).rich())
    recommended = server_yaml(records[0], arguments.calibration)
    console.print(recommended, highlight=False, soft_wrap=True, end='')
    if arguments.out is not None:
        _write(arguments.out, recommended)
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        tune_plot(arguments.plot, records)
    return 0


def _write(path: Path, recommended: str) -> None:
    try:
        path.write_text(recommended)
    except OSError as error:
        raise ConfigError(f'{path} cannot be written: {error.strerror}') from error
