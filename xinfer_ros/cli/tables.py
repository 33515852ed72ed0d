# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer tables``: the published tables beside simulated ones."""

import argparse

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path, whole_number
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import add_calibration, add_rounds, seeds

DEFAULT_MAX_ROBOTS = 32


def add_commands(commands: Commands) -> None:
    """Add ``tables``."""
    parser = commands.add_parser(
        'tables',
        help='lay the published tables of XInfer beside simulated ones',
        description=(
            'Simulates the fleets of tables 8 to 11 of XInfer and shows published and simulated\n'
            'numbers side by side, with the difference, and which claims hold in simulation.\n'
            'The whole set takes some minutes; shorter rounds give a first impression.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer tables --paper --out docs          # docs/reproduction.md, its pictures\n'
            '  xinfer tables --paper --rounds 1 --warm-up 10 --end 60 --max-robots 24\n'
            '  xinfer tables --paper --json tables.json  # lists: rounds, ercs, claims'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--paper', action='store_true', required=True, help='the tables of XInfer / FleetServe'
    )
    add_calibration(parser)
    parser.add_argument(
        '--max-robots', type=whole_number(1, 4096), default=DEFAULT_MAX_ROBOTS, metavar='N',
        help='largest fleet that the searches for capacity test',
    )  # fmt: skip
    add_rounds(parser)
    group = parser.add_argument_group('files')
    group.add_argument(
        '--out', type=file_path, default=None, metavar='FOLDER',
        help='write reproduction.md there, and its pictures to reproduction/',
    )  # fmt: skip
    group.add_argument(
        '--json', type=file_path, default=None, metavar='FILE.json',
        help='write rounds, ERCs and claims as three lists of records',
    )  # fmt: skip
    parser.set_defaults(run=_tables)


def _tables(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.claims import claims
    from xinfer_ros.fleet.paper_tables import load_paper_tables
    from xinfer_ros.fleet.records import output_file, write_lists
    from xinfer_ros.fleet.reproduction import Reproducer
    from xinfer_ros.fleet.reproduction_page import check_folder, write_page
    from xinfer_ros.fleet.reproduction_tables import comparison_tables
    from xinfer_ros.fleet.rounds import RoundPool
    from xinfer_ros.predict.calibration import load_calibration
    from xinfer_ros.sim.scenario import Round

    if arguments.json is not None:
        output_file(arguments.json, '.json')
    if arguments.out is not None:
        check_folder(arguments.out)
    calibration, paper = load_calibration(arguments.calibration), load_paper_tables()
    round = Round(warm_up_s=arguments.warm_up, end_s=arguments.end)
    console = output_console()
    with RoundProgress('rounds', console) as progress, RoundPool(arguments.jobs) as pool:
        reproducer = Reproducer(
            pool, calibration, round, seeds(arguments), progress.starting, progress.done
        )
        sim = reproducer.run(paper, arguments.max_robots)
    tables = comparison_tables(paper, sim)
    for table in tables:
        console.print(table.rich())
        console.print()
    if arguments.json is not None:
        rounds = [record for found in sim.rounds.values() for record in found]
        write_lists(
            arguments.json,
            rounds=rounds,
            ercs=list(sim.ercs.values()),
            claims=claims(paper, sim),
        )
    if arguments.out is not None:
        page = write_page(arguments.out, tables, paper, sim, _command(arguments))
        console.print(f'written: {page}', highlight=False, soft_wrap=True)
    return 0


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that gives the same page."""
    usual = (
        ('calibration', 'paper'), ('rounds', 3), ('seed', 1), ('warm_up', 30.0), ('end', 210.0),
        ('max_robots', DEFAULT_MAX_ROBOTS),
    )  # fmt: skip
    changed = [
        f' --{name.replace("_", "-")} {value:g}'
        if isinstance(value := getattr(arguments, name), float)
        else f' --{name.replace("_", "-")} {value}'
        for name, default in usual
        if getattr(arguments, name) != default
    ]
    return f'xinfer tables --paper{"".join(changed)} --out {arguments.out}'
