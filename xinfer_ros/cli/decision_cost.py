# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer decision-cost``: what a scheduling decision costs."""

import argparse

from xinfer_ros.cli.arguments import (
    MAX_FLEET,
    Commands,
    ExampleFormatter,
    names,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import add_calibration, add_files
from xinfer_ros.sched.settings import POLICIES


def add_commands(commands: Commands) -> None:
    """Add ``decision-cost``."""
    parser = commands.add_parser(
        'decision-cost',
        help='measure what a scheduling decision costs on this machine',
        description=(
            'Simulates a fleet, keeps every call that the scheduler gets, and replays them in\n'
            'their order on a fresh one. Timed is every pass with at least one request\n'
            'waiting: the refresh of the policy and its admission checks. Large fleets ask more\n'
            'seldom, so that they want about 80 responses a second together.\n'
            'The readable Python implementation takes minutes for large fleets.\n'
            'Run it on an idle machine.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer decision-cost\n'
            '  xinfer decision-cost --robots 18,1000 --policy all --implementation native\n'
            '  xinfer decision-cost --robots 8,15,18 --repeat 5 --json cost.json'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--robots', type=whole_numbers(1, MAX_FLEET), default=(8, 15, 18, 100, 1000),
        metavar='N[,N]', help='sizes of the fleet',
    )  # fmt: skip
    parser.add_argument(
        '--policy', default='xinfer,foresight', metavar='NAME[,NAME]',
        help=f'scheduling policies: {", ".join(POLICIES)}; or all',
    )  # fmt: skip
    parser.add_argument(
        '--implementation', default='all', metavar='NAME[,NAME]',
        help='native: compiled, reference: readable Python; or all',
    )  # fmt: skip
    parser.add_argument(
        '--repeat', type=whole_number(1, 100), default=3, metavar='N',
        help='replays; shown is the median of their quantiles',
    )  # fmt: skip
    parser.add_argument(
        '--seconds', type=whole_number(1, 600), default=10, metavar='S',
        help='simulated time that is recorded after every robot has asked once [s]',
    )  # fmt: skip
    add_calibration(parser)
    add_files(parser, plot='draw the costs over the sizes of the fleet')
    parser.set_defaults(run=_decision_cost)


def _decision_cost(arguments: argparse.Namespace) -> int:
    from xinfer_ros.core.clock import MonotonicClock
    from xinfer_ros.fleet.decision_cost import IMPLEMENTATIONS, decision_cost, record
    from xinfer_ros.fleet.paper_tables import load_paper_tables
    from xinfer_ros.fleet.plots import line_plot
    from xinfer_ros.fleet.records import output_files, write_records
    from xinfer_ros.fleet.round_plots import cost_curves
    from xinfer_ros.fleet.simulation_table import cost_table
    from xinfer_ros.predict.calibration import load_calibration
    from xinfer_ros.sched.settings import policy_settings

    output_files(arguments.json, arguments.plot)
    calibration = load_calibration(arguments.calibration)
    policies = names(arguments.policy, tuple(POLICIES), 'scheduling policy')
    made = names(arguments.implementation, tuple(IMPLEMENTATIONS), 'implementation')
    console = output_console()
    records = []
    with RoundProgress('fleets', console) as progress:
        progress.starting(len(policies) * len(made) * len(arguments.robots))
        for policy in policies:
            settings = policy_settings(policy, calibration)
            for robots in arguments.robots:
                recording = record(robots, calibration, settings, seconds=float(arguments.seconds))
                for implementation in made:
                    records.append(
                        decision_cost(
                            recording, implementation, MonotonicClock(), repeats=arguments.repeat
                        )
                    )
                    progress.done()
    console.print(cost_table(records, load_paper_tables().decision_us).rich())
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        line_plot(
            arguments.plot,
            title='Cost of a decision',
            y_label='time [us]',
            curves=cost_curves(records),
            log_x=True,
            log_y=True,
        )
    return 0
