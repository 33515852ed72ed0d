# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer erc``: how many robots a device keeps on time."""

import argparse
from collections.abc import Sequence

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, names, whole_number
from xinfer_ros.cli.console import RoundProgress, StatusLine, output_console
from xinfer_ros.cli.live import LogLines, add_server, isolate
from xinfer_ros.cli.load_arguments import add_load
from xinfer_ros.cli.simulation import add_files, add_simulation, seeds, simulation_plan, words
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.criterion import ABOUT, Criterion, parse_criterion
from xinfer_ros.fleet.records import ErcRecord, RoundRecord, output_files, write_records
from xinfer_ros.sched.settings import POLICIES

LIVE_POLICY, LIVE_WARM_UP_S, LIVE_END_S = 'foresight', 5.0, 25.0
SIM_POLICY, SIM_WARM_UP_S, SIM_END_S = 'all', 30.0, 210.0
# what one of the two places alone understands, each with what it is unless it was given
_SIM_ONLY: dict[str, object] = {'world': [], 'calibration': 'paper', 'jobs': None}
_LIVE_ONLY: dict[str, object] = {
    'model': '', 'server_set': [], 'params_file': [], 'bags': None, 'x_ms': None,
    'attach': False, 'no_pace': False,
}  # fmt: skip


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
            'count. On a live server every request must be answered with rows as well.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer erc --on sim --workload parcel --policy all\n'
            '  xinfer erc --on sim --policy foresight --criterion strict --plot erc.png\n'
            '  xinfer erc --on sim --policy xinfer --criterion p50:150 --json erc.json\n'
            '  xinfer erc --on live --criterion p50:150 --workload constant:180\n'
            '  xinfer erc --on live --model tiny --rounds 2 --end 65 --json live.json\n\n'
            f'{_places()}\n\ncriteria:\n{criteria}\n\n' + words()
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--on', choices=('sim', 'live'), default='sim',
        help='where: the simulator, or emulated robots on a live server',
    )  # fmt: skip
    parser.add_argument('--criterion', default='paper', metavar='NAME', help='see below')
    parser.add_argument(
        '--max-robots', type=whole_number(1, 4096), default=40, metavar='N',
        help='largest fleet that is tested',
    )  # fmt: skip
    add_simulation(parser, policy='')
    add_server(parser, flag='--server-set')
    add_load(parser)
    add_files(parser, plot='draw attainment over the fleet sizes tested')
    # of the place, see _place
    parser.set_defaults(run=_erc, warm_up=None, end=None)


def _places() -> str:
    return (
        'unless told otherwise:\n'
        f'  --on sim   all policies, {SIM_WARM_UP_S:g} to {SIM_END_S:g} s of each round count\n'
        f'  --on live  policy {LIVE_POLICY}, {LIVE_WARM_UP_S:g} to {LIVE_END_S:g} s; each policy '
        'gets a server'
    )


def _erc(arguments: argparse.Namespace) -> int:
    live = arguments.on == 'live'
    _place(arguments, live=live)
    criterion = parse_criterion(arguments.criterion)
    output_files(arguments.json, arguments.plot)
    rounds: list[RoundRecord] = []
    search = _search_live if live else _search_simulated
    title, records, code = search(arguments, criterion, rounds)
    if records:
        from xinfer_ros.fleet.simulation_table import erc_line, erc_table

        console = output_console()
        console.print(erc_table(title, records).rich())
        for record in records:
            console.print(
                erc_line(record, arguments.max_robots), highlight=False, markup=False,
                soft_wrap=True,
            )  # fmt: skip
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None and rounds:
        _draw(arguments, title, criterion, rounds)
    return code


def _place(arguments: argparse.Namespace, *, live: bool) -> None:
    """Fill in what depends on the place; refuse what the other one alone understands."""
    foreign, other = (_SIM_ONLY, 'sim') if live else (_LIVE_ONLY, 'live')
    for name, usual in foreign.items():
        if getattr(arguments, name) != usual:
            raise ConfigError(f'--{name.replace("_", "-")} goes with --on {other}')
    usual_policy = LIVE_POLICY if live else SIM_POLICY
    arguments.policy = arguments.policy or usual_policy
    warm_up_s, end_s = (LIVE_WARM_UP_S, LIVE_END_S) if live else (SIM_WARM_UP_S, SIM_END_S)
    arguments.warm_up = warm_up_s if arguments.warm_up is None else arguments.warm_up
    arguments.end = end_s if arguments.end is None else arguments.end


def _search_simulated(
    arguments: argparse.Namespace, criterion: Criterion, rounds: list[RoundRecord]
) -> tuple[str, list[ErcRecord], int]:
    """Search in virtual time; return title, records and exit code, and add the rounds."""
    from xinfer_ros.fleet.erc import ErcSearch, find_ercs
    from xinfer_ros.fleet.rounds import RoundPool
    from xinfer_ros.fleet.simulation_table import population_line

    plan, console = simulation_plan(arguments), output_console()
    settings = {each.name: each for each in plan.policies}
    searches = {name: (ErcSearch(arguments.max_robots), criterion) for name in settings}
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
    return title, records, 0


def _search_live(
    arguments: argparse.Namespace, criterion: Criterion, rounds: list[RoundRecord]
) -> tuple[str, list[ErcRecord], int]:
    """Search on servers that are started for it, one a policy, or on the one that runs."""
    isolate(attach=arguments.attach)
    from xinfer_ros.cli.live_erc import LiveErc

    chosen = names(arguments.policy, tuple(POLICIES), 'scheduling policy')
    if not 0.0 <= arguments.warm_up < arguments.end:
        raise ConfigError(
            f'a round to {arguments.end:g} s with {arguments.warm_up:g} s of warm-up; nothing '
            'is left to count'
        )
    console = output_console()
    log = LogLines(console, arguments.verbose)
    live = LiveErc(arguments, seeds(arguments), criterion, MonotonicClock(), log)
    with StatusLine(console) as status:
        records, failures = live.run(chosen, rounds, status)
    for failure in failures:
        status.say(f'NOT MEASURED {failure}')
    title = (
        f'ERC on a live server, {arguments.workload}, criterion {criterion.name}, '
        f'{arguments.rounds} × {arguments.end - arguments.warm_up:g} s'
    )
    return title, records, 1 if failures else 0


def _draw(
    arguments: argparse.Namespace,
    title: str,
    criterion: Criterion,
    rounds: Sequence[RoundRecord],
) -> None:
    from xinfer_ros.fleet.plots import line_plot
    from xinfer_ros.fleet.round_plots import attainment_curves

    line_plot(
        arguments.plot,
        title=title,
        y_label='responses within their budget [%]',
        curves=attainment_curves(rounds),
        level=None if criterion.attainment is None else 100.0 * criterion.attainment,
    )
