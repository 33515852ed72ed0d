# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer physical``: what response delay costs a robot with real physics."""

import argparse
from itertools import product
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
from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from xinfer_ros.fleet.physical import PhysicalPlan

DELAYS_MS = (0, 50, 100, 150, 200, 250, 300)
TASKS = ('static', 'moving')
MAX_COMMITMENT = 1000


def add_commands(commands: Commands) -> None:
    """Add ``physical``."""
    parser = commands.add_parser(
        'physical',
        help='measure what response delay costs two arms in a physics simulation',
        description=(
            'Two simulated arms pass a cube from hand to hand (gym-aloha, MuJoCo, no pictures),\n'
            'driven by the real executor in virtual time. In place of a network a scripted\n'
            'expert plans each chunk from the observation that it was sent, and knows no speed,\n'
            'as a model that is shown one picture; so what is stale really hurts. Tasks:\n'
            '  static  the cube lies where it was put\n'
            '  moving  the table carries the cube to and fro until it is lifted\n'
            'An episode has succeeded when the cube is in the left gripper alone within --limit.\n'
            'Every episode of every condition has the seeds 0, 1, ... : the same places.\n'
            'Needs gym-aloha: pip install "xinfer-ros[physics]". An episode takes about half a\n'
            'second of a core.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer physical                                       # minutes on two cores\n'
            '  xinfer physical --delays-ms 0,200 --episodes 5        # a first impression\n'
            '  xinfer physical --task moving --commitment measured,4,8,16 --delays-ms 0,100,200\n'
            '  xinfer physical --task moving --mode rtc,async,sync --json p.json --plot p.png'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--task', default=','.join(TASKS), metavar='NAME[,NAME]', help='tasks, see above'
    )
    parser.add_argument(
        '--delays-ms', type=whole_numbers(0, 10_000), default=DELAYS_MS, metavar='MS[,MS]',
        help='response delays [ms]',
    )  # fmt: skip
    parser.add_argument(
        '--spread', type=number(0.0, 1.0), default=0.0, metavar='SHARE',
        help='how far a delay may be off, as a share of it; drawn evenly',
    )  # fmt: skip
    parser.add_argument(
        '--commitment', default='measured', metavar='D[,D]',
        help='d of the executor: measured, or rows of 20 ms',
    )  # fmt: skip
    parser.add_argument(
        '--mode', default='rtc', metavar='NAME[,NAME]',
        help=f'execution modes: {", ".join(MODES)}; `xinfer modes --help` tells about them',
    )  # fmt: skip
    parser.add_argument(
        '--episodes', type=whole_number(1, 10_000), default=20, metavar='N', help='of each point'
    )
    parser.add_argument(
        '--speed-mm', type=whole_number(1, 500), default=40, metavar='MM',
        help='speed of the cube in the moving task [mm/s]',
    )  # fmt: skip
    parser.add_argument(
        '--limit', type=number(1.0, 600.0), default=20.0, metavar='S',
        help='time after which an episode has failed [s]',
    )  # fmt: skip
    add_chunk_arguments(parser)
    parser.add_argument(
        '--jobs', type=whole_number(1, 256), default=None, metavar='N',
        help='processes that simulate at once; without it, one a core',
    )  # fmt: skip
    add_delay_files(parser)
    parser.set_defaults(run=_physical)


def _physical(arguments: argparse.Namespace) -> int:
    try:
        from xinfer_ros.fleet.physical import run_physical
        from xinfer_ros.fleet.physical_report import physical_plot, physical_table
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'{error.name} is not installed; pip install "xinfer-ros[physics]" has what a '
            'simulation with physics needs'
        ) from error
    from xinfer_ros.fleet.records import output_files, write_lists

    output_files(arguments.json, arguments.plot)
    plan = _plan(arguments)
    console = output_console()
    with RoundProgress('episodes', console) as progress:
        progress.starting(len(plan.conditions) * len(plan.seeds))
        records = run_physical(plan, arguments.jobs, progress.done)
    title = (
        f'Cube transfer, {arguments.episodes} episodes a point, moving at '
        f'{arguments.speed_mm} mm/s, H {plan.horizon} × 20 ms, TE {plan.period_ms} ms, '
        f'{plan.limit_s:g} s allowed'
    )
    console.print(physical_table(title, records).rich())
    if arguments.json is not None:
        write_lists(arguments.json, points=records)
    if arguments.plot is not None:
        physical_plot(arguments.plot, title, records)
    return 0


def _plan(arguments: argparse.Namespace) -> 'PhysicalPlan':
    from xinfer_ros.fleet.physical import Condition, PhysicalPlan
    from xinfer_ros.robot.execution_mode import ExecutionMode

    tasks = names(arguments.task, TASKS, 'task')
    modes = names(arguments.mode, MODES, 'execution mode')
    commitments = _commitments(arguments.commitment)
    conditions = tuple(
        Condition(task=task, mode=ExecutionMode(mode), commitment=commitment, delay_ms=delay_ms)
        for task, mode, commitment, delay_ms in product(
            tasks, modes, commitments, arguments.delays_ms
        )
    )
    return PhysicalPlan(
        conditions=conditions,
        seeds=tuple(range(arguments.episodes)),
        speed=arguments.speed_mm / 1e3,
        spread=arguments.spread,
        period_ms=arguments.period_ms,
        horizon=arguments.horizon,
        limit_s=arguments.limit,
    )


def _commitments(text: str) -> tuple[int | None, ...]:
    """
    Return commitments, None for a measured one.

    :raises ConfigError: if one is neither a count nor ``measured``
    """
    found: dict[int | None, None] = {}
    for part in (each.strip() for each in text.split(',')):
        is_count = part.isdecimal() and int(part) <= MAX_COMMITMENT
        if not is_count and part != 'measured':
            raise ConfigError(
                f'--commitment {part!r}: measured, or a whole number from 0 to {MAX_COMMITMENT}'
            )
        found[int(part) if is_count else None] = None
    return tuple(found)
