# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer plan``: how many robots both tiers hold, and which of them binds."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import (
    Commands,
    ExampleFormatter,
    file_path,
    number,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.plan_request import MAX_HORIZONS, PlanRequest, plan_request
from xinfer_ros.cli.simulation import (
    add_calibration,
    add_files,
    add_rounds,
    seeds,
)

if TYPE_CHECKING:
    from xinfer_ros.fleet.plan_brain import BrainTier
    from xinfer_ros.fleet.plan_brain_file import Brain
    from xinfer_ros.fleet.plan_check import CheckRecord

BUDGETS = '60,75,90,120,180,250,400'
MAX_STEPS = 1000


def add_commands(commands: Commands) -> None:
    """Add ``plan``."""
    parser = commands.add_parser(
        'plan',
        help='how many robots the VLA tier and the brain tier hold, and which of them binds',
        description=(
            'Puts both tiers side by side: how many robots a device keeps within a deadline, and\n'
            'of how many robots with an LLM brain the episodes have a place in the prefix cache.\n'
            'The fleet is the smaller number. Both are bounds that take seconds to compute;\n'
            '--check holds them against the simulators at three points each, which takes minutes.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer plan --plot plan.png\n'
            '  xinfer plan --calibration my_device.json --no-brain --budgets 90,150,400\n'
            '  xinfer plan --budgets parcel --criterion strict --execution-steps 6,12\n'
            '  xinfer plan --cache-tokens 1500000 --brain-share 0.5\n'
            '  xinfer plan --calls-per-vla-call 8.6    # the VLA is a tool of the brain\n'
            '  xinfer plan --brain my_server.json --check\n\n'
            'a file of a brain: {"server": {...}, "episodes": {...}, "controller": {...}}, each '
            'with\nwhat is not as usual; docs/plan.md has all names.'
        ),
        formatter_class=ExampleFormatter,
    )
    _add_vla(parser)
    _add_brain(parser)
    parser.add_argument(
        '--check', action='store_true', help='simulate three points of each tier as well'
    )
    add_rounds(parser)
    add_files(parser, plot='draw both tiers over the deadline')
    parser.set_defaults(run=_plan)


def _add_vla(parser: argparse.ArgumentParser) -> None:
    add_calibration(parser)
    parser.add_argument(
        '--budgets', default=BUDGETS, metavar='MS[,MS]|WORKLOAD',
        help='response budgets [ms], or a workload: alternating, multiple, parcel, recorded, '
        'constant:MS, trace:FILE',
    )  # fmt: skip
    parser.add_argument(
        '--execution-steps', type=whole_numbers(1, MAX_STEPS), default=(6,), metavar='S[,S]',
        help=f'rows that robots run of each chunk, up to {MAX_HORIZONS} numbers; with the spacing '
        'they give TE, at which robots ask',
    )  # fmt: skip
    parser.add_argument(
        '--spacing-ms', type=number(0.1, 10_000.0), default=30.0, metavar='MS',
        help='spacing of the rows [ms]',
    )  # fmt: skip
    parser.add_argument(
        '--criterion', default='paper', metavar='NAME',
        help='paper, strict or attainment:SHARE: see xinfer erc --help',
    )  # fmt: skip
    parser.add_argument('--policy', default='foresight', metavar='NAME', help='scheduling policy')
    parser.add_argument(
        '--set', nargs='+', default=[], action='extend', metavar='KEY=VALUE', dest='changes',
        help='settings of the scheduling policy',
    )  # fmt: skip


def _add_brain(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('brain')
    group.add_argument('--no-brain', action='store_true', help='robots have none')
    group.add_argument(
        '--brain', type=file_path, default=None, metavar='FILE.json',
        help='LLM server and episodes; without it, those fitted to published figures',
    )  # fmt: skip
    group.add_argument(
        '--cache-tokens', type=whole_number(1, 10**9), default=None, metavar='N',
        help='size of the prefix cache, as the server tells it [tokens]',
    )  # fmt: skip
    use = group.add_mutually_exclusive_group()
    use.add_argument(
        '--brain-share', type=number(0.001, 1.0), default=1.0, metavar='SHARE',
        help='share of the robots that run an episode at a time',
    )  # fmt: skip
    use.add_argument(
        '--calls-per-vla-call', type=number(0.01, 1000.0), default=None, metavar='N',
        help='the VLA is a tool of the brain: robots stand still while it thinks, N brain calls '
        'for each VLA call (8.6 was published); without it, robots move all the time',
    )  # fmt: skip
    group.add_argument(
        '--chunks-per-vla-call', type=whole_number(1, 100_000), default=1, metavar='N',
        help='chunks of such a VLA call',
    )  # fmt: skip


def _plan(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.plan import FleetPlan
    from xinfer_ros.fleet.plan_plot import plan_plot
    from xinfer_ros.fleet.plan_report import check_table, plan_table
    from xinfer_ros.fleet.records import output_files, write_lists

    output_files(arguments.json, arguments.plot)
    asked = plan_request(arguments)
    console = output_console()
    with RoundProgress('steps', console) as progress:
        plan = FleetPlan(asked.vla, _brain_tier(asked.brain, progress), asked.use)
        records = [plan.record(mix, h) for h in asked.horizons for mix in asked.mixes]
        console.print(plan_table(asked.title, records, asked.note(plan)).rich())
        checks = _checked(arguments, asked, progress) if arguments.check else []
    if checks:
        console.print(check_table(checks).rich())
    if arguments.json is not None:
        write_lists(arguments.json, plan=records, check=checks)
    if arguments.plot is not None:
        plan_plot(arguments.plot, asked.title, plan, asked.horizons, records, checks)
    return 0


def _brain_tier(brain: 'Brain | None', progress: RoundProgress) -> 'BrainTier | None':
    from xinfer_ros.fleet.plan_brain import BrainTier

    if brain is None:
        return None
    progress.starting(1)
    tier = BrainTier(brain)
    progress.done()
    return tier


def _checked(
    arguments: argparse.Namespace, asked: PlanRequest, progress: RoundProgress
) -> 'list[CheckRecord]':
    """Simulate three points of each tier."""
    from xinfer_ros.fleet.plan_check import CACHE_SHARES, BrainCheck, check_brain
    from xinfer_ros.fleet.task_pool import TaskPool

    checks = _check_vla(arguments, asked, progress)
    if asked.brain is None:
        return checks
    points = [
        BrainCheck(brain=asked.brain, share=share, seeds=seeds(arguments))
        for share in CACHE_SHARES
    ]
    progress.starting(len(points))
    with TaskPool(check_brain, arguments.jobs) as pool:
        groups = pool.run(points, progress.done)
    return [*checks, *(record for group in groups for record in group)]


def _check_vla(
    arguments: argparse.Namespace, asked: PlanRequest, progress: RoundProgress
) -> 'list[CheckRecord]':
    from xinfer_ros.fleet.plan_check import VlaCheck, check_vla, three_of
    from xinfer_ros.fleet.rounds import RoundPool, RoundResult, RoundTask
    from xinfer_ros.fleet.simulation_table import population_line
    from xinfer_ros.sim.scenario import Round

    period_ms = asked.horizons[0].period_ms
    check = VlaCheck(
        settings=asked.settings,
        calibration=asked.calibration,
        criterion=asked.criterion,
        round=Round(warm_up_s=arguments.warm_up, end_s=arguments.end, period_ms=period_ms),
        seeds=seeds(arguments),
    )
    alone = [mix for mix in asked.mixes if len(mix.shares) == 1]
    planned = {next(iter(mix.shares)): asked.vla.robots(mix, period_ms) for mix in alone}
    chosen = three_of([deadline for deadline, robots in planned.items() if robots])

    with RoundPool(arguments.jobs) as pool:

        def run(tasks: Sequence[RoundTask]) -> list[RoundResult]:
            progress.starting(len(tasks))
            return pool.run(tasks, progress.done)

        return check_vla(
            check,
            {deadline: planned[deadline] for deadline in chosen},
            run,
            lambda deadline, robots, found, faults: progress.say(
                population_line(f'{deadline:g} ms', robots, found, faults)
            ),
        )
