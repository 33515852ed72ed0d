# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer erc``: how many robots a device keeps on time."""

import argparse
from collections.abc import Sequence

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, whole_number
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import add_files, add_simulation, simulation_plan, words
from xinfer_ros.fleet.criterion import ABOUT, parse_criterion
from xinfer_ros.fleet.records import RoundRecord


def add_commands(commands: Commands) -> None:
    """Add ``erc``."""
    criteria = '\n'.join(f'  {name:16} {about}' for name, about in ABOUT)
    parser = commands.add_parser(
        'erc',
        help='search for the effective robot capacity: the largest fleet that meets a criterion',
        description=(
            'Searches for the effective robot capacity (ERC): the largest fleet of which every\n'
            'round meets a criterion, while no smaller fleet tested fails and the next larger\n'
            'one does. Fleet sizes rise by four until one fails; then the four below the least\n'
            'that has failed are tested, until all of them pass: luck above a failure does not\n'
            'count.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer erc --on sim --workload parcel --policy all\n'
            '  xinfer erc --on sim --policy foresight --criterion strict --plot erc.png\n'
            '  xinfer erc --on sim --policy xinfer --criterion p50:150 --json erc.json\n\n'
            f'criteria:\n{criteria}\n\n' + words()
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument('--on', choices=('sim',), default='sim', help='where: the simulator')
    parser.add_argument('--criterion', default='paper', metavar='NAME', help='see below')
    parser.add_argument(
        '--max-robots', type=whole_number(1, 4096), default=40, metavar='N',
        help='largest fleet that is tested',
    )  # fmt: skip
    add_simulation(parser, policy='all')
    add_files(parser, plot='draw attainment over the fleet sizes tested')
    parser.set_defaults(run=_erc)


def _erc(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.erc import ErcSearch, find_ercs
    from xinfer_ros.fleet.plots import line_plot
    from xinfer_ros.fleet.records import output_files, write_records
    from xinfer_ros.fleet.round_plots import attainment_curves
    from xinfer_ros.fleet.rounds import RoundPool
    from xinfer_ros.fleet.simulation_table import erc_table, population_line

    criterion = parse_criterion(arguments.criterion)
    plan = simulation_plan(arguments)
    output_files(arguments.json, arguments.plot)
    console = output_console()
    settings = {each.name: each for each in plan.policies}
    searches = {name: (ErcSearch(arguments.max_robots), criterion) for name in settings}
    rounds: list[RoundRecord] = []
    with RoundProgress('rounds', console) as progress, RoundPool(arguments.jobs) as pool:

        def simulate(wave: Sequence[tuple[str, int]]) -> list[list[RoundRecord]]:
            tasks = [t for name, robots in wave for t in plan.tasks(settings[name], robots)]
            progress.starting(len(tasks))
            found = iter([result.record for result in pool.run(tasks, progress.done)])
            return [[next(found) for _ in plan.seeds] for _ in wave]

        def tell(
            name: str, robots: int, found: Sequence[RoundRecord], faults: Sequence[str]
        ) -> None:
            rounds.extend(found)
            progress.say(population_line(name, robots, found, faults))

        records = list(find_ercs(searches, simulate, tell).values())
    title = (
        f'ERC, {plan.workload.name}, criterion {criterion.name}, {len(plan.seeds)} × '
        f'{plan.round.end_s:g} s, device {plan.calibration.name}'
    )
    console.print(erc_table(title, records).rich())
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        line_plot(
            arguments.plot,
            title=title,
            y_label='responses within their budget [%]',
            curves=attainment_curves(rounds),
            level=None if criterion.attainment is None else 100.0 * criterion.attainment,
        )
    return 0
