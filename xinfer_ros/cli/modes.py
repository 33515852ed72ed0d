# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer modes``: the execution modes of the executor side by side."""

import argparse
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import (
    Commands,
    ExampleFormatter,
    names,
    number,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.closed_loop import MODES, add_chunk_arguments, add_delay_files
from xinfer_ros.cli.console import RoundProgress, output_console

if TYPE_CHECKING:
    from xinfer_ros.fleet.modes import ModesPlan

DELAYS_MS = (0, 60, 120, 180, 240, 300)
MAX_DELAY_MS = 10_000


def add_commands(commands: Commands) -> None:
    """Add ``modes``."""
    parser = commands.add_parser(
        'modes',
        help='compare the execution modes on the same recorded motions and delays',
        description=(
            'Lets the executor of a robot play recorded motions in virtual time, in each of its\n'
            'execution modes, with the same delays and the same seeds:\n'
            '  rtc       a request tells the leftover and how much of it is promised; the new\n'
            '            chunk repeats that and is drawn towards the rest (real-time chunking)\n'
            '  async     the new chunk takes over at the handoff, whatever the old one was\n'
            '  sync      the robot plays its chunk to the end, then asks and waits\n'
            '  ensemble  a row is the mean of all chunks that cover it (temporal ensembling)\n'
            'In place of a network a source plans along the recording, from where the robot is\n'
            'or from the end of what was promised. Each inference deviates from the recording in\n'
            'its own smooth way, as samples of a VLA do (--deviation). How strongly a chunk is\n'
            'drawn to the leftover follows from the published weights and gains.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer modes                                    # the shipped episodes, seconds\n'
            '  xinfer modes --delays-ms 0,100,400 --modes rtc,async --seeds 10\n'
            '  xinfer modes --deviation 0.05 --spread 0.5 --plot modes.png --json modes.json\n'
            '  xinfer modes --episodes ~/bags/fold_towel --horizon 30 --period-ms 300'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--episodes', nargs='+', default=[], metavar='NAME|PATH',
        help='recordings of any readable format, or names of shipped ones (all shipped ones)',
    )  # fmt: skip
    parser.add_argument(
        '--modes', default=','.join(MODES), metavar='NAME[,NAME]', help='modes, see above'
    )
    parser.add_argument(
        '--delays-ms', type=whole_numbers(0, MAX_DELAY_MS), default=DELAYS_MS, metavar='MS[,MS]',
        help='mean response delays [ms]',
    )  # fmt: skip
    parser.add_argument(
        '--spread', type=number(0.0, 1.0), default=0.2, metavar='SHARE',
        help='how far a delay may be off its mean, as a share of it; drawn evenly',
    )  # fmt: skip
    parser.add_argument(
        '--deviation', type=number(0.0, 1.0), default=0.02, metavar='RAD',
        help='standard deviation of each inference from the recording [rad]',
    )  # fmt: skip
    add_chunk_arguments(parser)
    parser.add_argument(
        '--seeds', type=whole_number(1, 1000), default=5, metavar='N',
        help='runs of each mode, delay and episode, with the seeds 1, 2, ...',
    )  # fmt: skip
    add_delay_files(parser)
    parser.set_defaults(run=_modes)


def _modes(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.modes import compare_modes
    from xinfer_ros.fleet.modes_report import modes_plot, modes_table
    from xinfer_ros.fleet.records import output_files, write_lists

    output_files(arguments.json, arguments.plot)
    plan = _plan(arguments)
    console = output_console()
    with RoundProgress('runs', console) as progress:
        progress.starting(plan.num_runs)
        records = compare_modes(plan, progress.done)
    step = max(motion.largest_step for motion in plan.motions)
    title = (
        f'Execution modes: {len(plan.motions)} episodes × {len(plan.seeds)} seeds, '
        f'delay ± {100 * plan.spread:.0f} %, deviation {1e3 * plan.deviation:.0f} mrad, '
        f'H {plan.horizon}, TE {arguments.period_ms} ms'
    )
    console.print(modes_table(title, records, step).rich())
    if arguments.json is not None:
        write_lists(arguments.json, modes=records)
    if arguments.plot is not None:
        modes_plot(arguments.plot, title, records, step)
    return 0


def _plan(arguments: argparse.Namespace) -> 'ModesPlan':
    from xinfer_ros.config import MAX_BUDGET_S, ExecutorConfig
    from xinfer_ros.episodes.sources import all_episodes, shipped_episodes
    from xinfer_ros.fleet.modes import ModesPlan, Motion
    from xinfer_ros.robot.execution_mode import ExecutionMode
    from xinfer_ros.ros.process import share_folder

    modes = names(arguments.modes, MODES, 'execution mode')
    shipped = share_folder() / 'episodes'
    found = all_episodes(arguments.episodes or shipped_episodes(shipped), shipped)
    return ModesPlan(
        motions=tuple(Motion.of(one.read()) for one in found),
        modes=tuple(ExecutionMode(mode) for mode in modes),
        delays_ms=arguments.delays_ms,
        seeds=tuple(range(1, arguments.seeds + 1)),
        spread=arguments.spread,
        deviation=arguments.deviation,
        horizon=arguments.horizon,
        config=ExecutorConfig(
            minimum_period_s=arguments.period_ms / 1e3,
            response_budget_s=MAX_BUDGET_S,  # nothing is late here, so that d follows the delay
        ),
    )
