# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer compare``: every scheduling policy on every workload."""

import argparse
from collections.abc import Sequence
from functools import partial

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, names, whole_number
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import (
    add_calibration,
    add_files,
    add_rounds,
    default_world,
    seeds,
    settings_of,
    words,
)
from xinfer_ros.fleet.compare import Arena, Comparison, Contender
from xinfer_ros.fleet.criterion import parse_criterion
from xinfer_ros.fleet.trace import load_workload
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.settings import POLICIES
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.robot_time import ROBOT_TIME, RobotTimeWorkload
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import WORKLOADS

ROBOTS = 15
KNOWN = (*WORKLOADS, *ROBOT_TIME)


def add_commands(commands: Commands) -> None:
    """Add ``compare``."""
    parser = commands.add_parser(
        'compare',
        help='compare scheduling policies: capacity, attainment, goodput, starvation, fairness',
        description=(
            'Simulates every scheduling policy on every workload: one fleet, and the search for\n'
            'the largest fleet that meets the criterion (ERC). Workloads in robot time run on\n'
            'the profile of a whole pipeline, with robots that execute rows and starve without.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer compare --json compare.json --plot compare.png\n'
            '  xinfer compare --policies serial robion xinfer --workloads alternating,parcel\n'
            '  xinfer compare --workloads one-fast --policies round_robin,armory_edf \\\n'
            '      armory_edf:max_batch=3 lookahead lookahead:fast_weight=5\n\n' + words()
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--policies', nargs='+', default=(), metavar='NAME',
        help='scheduling policies, NAME[,NAME] or a variant NAME:KEY=VALUE[:KEY=VALUE]; without '
        'it, all',
    )  # fmt: skip
    parser.add_argument(
        '--workloads', default='all', metavar='NAME[,NAME]',
        help=f'{", ".join(KNOWN)}, constant:MS, trace:FILE; or all',
    )  # fmt: skip
    parser.add_argument(
        '--robots', type=whole_number(1, 4096), default=None, metavar='N',
        help=f"fleet of every number but ERC (default: the workload's own, else {ROBOTS})",
    )  # fmt: skip
    parser.add_argument(
        '--max-robots', type=whole_number(1, 4096), default=32, metavar='N',
        help='largest fleet that is tested',
    )  # fmt: skip
    parser.add_argument(
        '--criterion', default='paper', metavar='NAME', help='of budgets, see xinfer erc --help'
    )
    parser.add_argument(
        '--robot-time-criterion', default='starved:0.05', metavar='NAME', help='of robot time'
    )
    add_calibration(parser)
    parser.add_argument(
        '--robot-time-calibration', default='pi05_l40s', metavar='NAME|FILE',
        help='calibrated device of the workloads in robot time: pi05_l40s, pi05_h100, groot_l40s',
    )  # fmt: skip
    add_rounds(parser, warm_up_s=10.0, end_s=110.0)
    add_files(parser, plot='draw capacities, and who starves in robot time')
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.compare_report import capacity_table, compare_plot, workload_table
    from xinfer_ros.fleet.records import output_files, write_records
    from xinfer_ros.fleet.rounds import RoundPool

    contenders, arenas = _contenders(arguments.policies or ('all',)), _arenas(arguments)
    for contender in contenders:  # a mistake shows before anything is simulated
        contender.settings(arenas[0].calibration)
    round = Round(warm_up_s=arguments.warm_up, end_s=arguments.end)
    output_files(arguments.json, arguments.plot)
    console = output_console()
    with RoundProgress('rounds', console) as progress, RoundPool(arguments.jobs) as pool:
        comparison = Comparison(pool, round, seeds(arguments), progress.starting, progress.done)
        records = comparison.run(arenas, contenders)
    for arena in arenas:
        of_arena = [record for record in records if record.workload == arena.workload.name]
        console.print(workload_table(of_arena).rich())
    console.print(capacity_table(records).rich())
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        compare_plot(arguments.plot, records)
    return 0


def _contenders(wanted: Sequence[str]) -> list[Contender]:
    found: dict[str, Contender] = {}
    for text in wanted:
        if ':' in text:
            name, *pairs = text.split(':')
            names(name, tuple(POLICIES), 'scheduling policy')
            found[text] = Contender(name=text, settings=partial(_variant, name, tuple(pairs)))
            continue
        for name in names(text, tuple(POLICIES), 'scheduling policy'):
            found[name] = Contender(name=name, settings=partial(_variant, name, ()))
    return list(found.values())


def _variant(name: str, pairs: tuple[str, ...], calibration: Calibration) -> PolicySettings:
    return settings_of(name, calibration, pairs)


def _arenas(arguments: argparse.Namespace) -> list[Arena]:
    wanted = arguments.workloads.split(',') if arguments.workloads != 'all' else KNOWN
    arenas = []
    for name in dict.fromkeys(part.strip() for part in wanted):
        workload = load_workload(name)
        rows = isinstance(workload, RobotTimeWorkload)
        device = arguments.robot_time_calibration if rows else arguments.calibration
        criterion = arguments.robot_time_criterion if rows else arguments.criterion
        arenas.append(
            Arena(
                workload=workload,
                calibration=load_calibration(device),
                world=default_world(workload),
                robots=arguments.robots or workload.robots or ROBOTS,
                criterion=parse_criterion(criterion),
                max_robots=arguments.max_robots,
            )
        )
    return arenas
