# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer sim``: rounds of a simulated fleet."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from xinfer_ros.cli.arguments import (
    MAX_FLEET,
    Commands,
    ExampleFormatter,
    file_path,
    seconds,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import (
    SimulationPlan,
    add_files,
    add_simulation,
    simulation_plan,
    words,
)
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.rounds import RoundResult

DEFAULT_ROBOTS = 15


def add_commands(commands: Commands) -> None:
    """Add ``sim``."""
    parser = commands.add_parser(
        'sim',
        help='simulate a fleet under a scheduling policy: minutes of its life in a second',
        description=(
            'Simulates rounds of a fleet of robots on a calibrated device. Each robot asks for\n'
            'its next action chunk with a response budget; shown is who is answered in time.\n'
            'Equal seeds give equal rounds, whatever the scheduling policy.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer sim --robots 18 --policy foresight\n'
            '  xinfer sim --robots 18 --policy all --plot latency.png\n'
            '  xinfer sim --workload parcel --robots 10,12,14,16,18 --policy xinfer,foresight \\\n'
            '             --plot attainment.png --json rounds.json\n'
            '  xinfer sim --robots 18 --policy xinfer --set arrival_aware=false   # an ablation\n'
            '  xinfer sim --robots 18 --world slowdown=1.1 jitter_ms=15  # a worse world\n'
            '  xinfer sim --robots 18 --policy xinfer --explain 20 --explain-at 60\n'
            '  xinfer sim --robots 18 --decision-log decisions    # then: xinfer explain decisions'
            '\n\n' + words()
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--robots', type=whole_numbers(1, MAX_FLEET), default=None, metavar='N[,N]',
        help=f"size of the fleet, or several (default: the workload's own, else {DEFAULT_ROBOTS})",
    )  # fmt: skip
    add_simulation(parser, policy='foresight')
    add_files(
        parser, plot='draw the latencies of one fleet, or attainment over several fleet sizes'
    )
    group = parser.add_argument_group('decisions')
    group.add_argument(
        '--explain', type=whole_number(0, 100_000), default=0, metavar='N',
        help='tell N decisions of the first round as sentences',
    )  # fmt: skip
    group.add_argument(
        '--explain-at', type=seconds, default=None, metavar='S',
        help='simulated time from which on (default: the end of the warm-up) [s]',
    )  # fmt: skip
    group.add_argument(
        '--decision-log', type=file_path, default=None, metavar='FOLDER',
        help='write the decision log of the first round of each scheduling policy, for '
        '`xinfer explain` and `xinfer trace`',
    )  # fmt: skip
    parser.set_defaults(run=_sim)


def _sim(arguments: argparse.Namespace) -> int:
    from xinfer_ros.engine.decision_writer import check_log_folder
    from xinfer_ros.fleet.explain import explanations
    from xinfer_ros.fleet.records import output_files, write_records
    from xinfer_ros.fleet.rounds import RoundPool
    from xinfer_ros.fleet.simulation_table import rounds_table

    plan = simulation_plan(arguments)
    sizes = arguments.robots or (plan.workload.robots or DEFAULT_ROBOTS,)
    output_files(arguments.json, arguments.plot)
    if arguments.decision_log is not None:
        check_log_folder(arguments.decision_log)
    if arguments.explain_at is not None and not arguments.explain:
        raise ConfigError('--explain-at tells when; add --explain N to tell how many')
    console = output_console()
    tasks = [
        task
        for settings in plan.policies
        for robots in sizes
        for task in plan.tasks(settings, robots, audited=True)
    ]
    with RoundProgress('rounds', console) as progress, RoundPool(arguments.jobs) as pool:
        progress.starting(len(tasks))
        results = pool.run(tasks, progress.done)
    records = [result.record for result in results]
    title = (
        f'workload {plan.workload.name}, {plan.round.warm_up_s:g} to {plan.round.end_s:g} s of '
        f'each round, device {plan.calibration.name}'
    )
    console.print(rounds_table(title, records).rich())
    fastest = min(record.real_time_factor for record in records)
    console.print(f'simulated {fastest:,.0f} times as fast as real time', highlight=False)
    for settings in plan.policies if arguments.explain else ():
        console.print(f'\nDecisions of {settings.name}, {sizes[0]} robots:', highlight=False)
        first = plan.tasks(settings, sizes[0])[0]
        for line in explanations(first, arguments.explain, arguments.explain_at):
            console.print(line, highlight=False, soft_wrap=True)
    if arguments.decision_log is not None:
        for line in _log_rounds(plan, sizes[0], arguments.decision_log):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        _plot(arguments.plot, plan, sizes, results)
    return 0


def _log_rounds(plan: SimulationPlan, robots: int, folder: Path) -> Iterator[str]:
    from xinfer_ros.fleet.round_log import log_round

    for settings in plan.policies:
        path = log_round(plan.tasks(settings, robots)[0], folder)
        yield f'decision log of {settings.name}, {robots} robots: {path}'


def _plot(
    path: Path, plan: SimulationPlan, sizes: Sequence[int], results: Sequence[RoundResult]
) -> None:
    from xinfer_ros.fleet.plots import latency_plot, line_plot
    from xinfer_ros.fleet.round_plots import attainment_curves, latencies

    if len(sizes) > 1:
        line_plot(
            path,
            title=f'Attainment, {plan.workload.name}',
            y_label='responses within their budget [%]',
            curves=attainment_curves([result.record for result in results]),
            level=95.0,
        )
    else:
        title = f'Latency, {plan.workload.name}, {sizes[0]} robots'
        latency_plot(path, title=title, latencies=latencies(results))
