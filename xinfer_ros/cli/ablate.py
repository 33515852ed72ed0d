# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer ablate``: what each mechanism of the engine gains on this machine."""

import argparse
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import (
    Commands,
    ExampleFormatter,
    file_path,
    seconds,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from xinfer_ros.engine.stage_times import StageTime
    from xinfer_ros.fleet.ablation import Variant
    from xinfer_ros.fleet.report_table import ReportTable

STAGE_ROUNDS = 8
STEPS = 'off,C,C+M,C+M+R+G'


def add_commands(commands: Commands) -> None:
    """Add ``ablate``."""
    parser = commands.add_parser(
        'ablate',
        help='measure stage times, and what each mechanism of the engine gains',
        description=(
            'Measures the stages by themselves, then lets robots in closed loop ask real engine\n'
            'processes that differ in their switches, in turn, and prints answers per second:\n'
            '  C  pictures are prepared while the device computes (overlap_preparation)\n'
            '  M  several units of a stage at once, and batches, as the calibration knows them\n'
            '     (stage_concurrency)\n'
            '  R  no common round: each request advances by itself (round_barrier: false)\n'
            '  G  units of different stages run at once (stage_overlap)\n'
            'Each switch is also a setting of the server; `xinfer settings server` has them.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer ablate\n'
            '  xinfer ablate --variants off,M,M+C,M+R,M+G,C+M+R+G --robots 16 --json ablate.json\n'
            '  xinfer ablate --model /models/pi05_folding --calibration pi05.json --plot a.png'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument('--model', default='tiny', metavar='NAME|FOLDER', help='model to serve')
    parser.add_argument(
        '--calibration', default='', metavar='NAME|FILE',
        help='of the device; as shipped with the model if it is left out',
    )  # fmt: skip
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N')
    parser.add_argument('--policy', default='foresight', help='scheduling policy')
    parser.add_argument(
        '--variants', default=STEPS, metavar='LIST', help='switches that are on, for each engine'
    )
    parser.add_argument(
        '--robots', type=whole_number(1, 256), default=8, help='robots in closed loop'
    )
    parser.add_argument(
        '--batches', type=whole_numbers(1, 8), default=(1, 2, 4), metavar='LIST',
        help='batch sizes of the stage times',
    )  # fmt: skip
    parser.add_argument('--window', type=seconds, default=4.0, metavar='S', help='of one run')
    parser.add_argument('--rounds', type=whole_number(1, 100), default=5, help='runs of each')
    parser.add_argument('--json', type=file_path, metavar='FILE', help='write the numbers')
    parser.add_argument('--plot', type=file_path, metavar='FILE.png', help='draw the throughput')
    parser.set_defaults(run=_ablate)


def _ablate(arguments: argparse.Namespace) -> int:
    from xinfer_ros.engine.settings import EngineSettings
    from xinfer_ros.engine.stage_times import stage_times
    from xinfer_ros.fleet.ablation import ablate, switched
    from xinfer_ros.fleet.plots import range_plot
    from xinfer_ros.fleet.records import output_files, write_lists
    from xinfer_ros.setting import settings_from

    given = {
        'model': arguments.model,
        'device': arguments.device,
        'calibration': arguments.calibration,
        'scheduling_policy': arguments.policy,
    }
    config = settings_from(ServerConfig, given, {key: f'--{key}' for key in given})
    names = list(dict.fromkeys(part.strip() for part in arguments.variants.split(',')))
    if arguments.window <= 0.0:
        raise ConfigError('--window is 0; a time above 0 is needed')
    for name in names:
        EngineSettings(switched(config, name)).device()
    output_files(arguments.json, arguments.plot)
    console, clock = output_console(), MonotonicClock()
    with RoundProgress('stage times', console) as progress:
        progress.starting(STAGE_ROUNDS * 3 * len(arguments.batches))
        times = stage_times(config, arguments.batches, STAGE_ROUNDS, clock, progress.done)
    console.print(_times_table(config, times).rich())
    with RoundProgress('windows', console) as progress:
        progress.starting((arguments.rounds + 1) * len(names))
        variants = ablate(
            config,
            names,
            num_robots=arguments.robots,
            window_s=arguments.window,
            rounds=arguments.rounds,
            clock=clock,
            done=progress.done,
        )
    title = (
        f'{arguments.robots} robots in closed loop, {config.model}, {config.scheduling_policy}, '
        f'{arguments.rounds} × {arguments.window:g} s each, in turn'
    )
    console.print(_variants_table(title, variants).rich())
    if arguments.json is not None:
        write_lists(arguments.json, stage_times=times, variants=variants)
    if arguments.plot is not None:
        bars = {variant.name: variant.per_s for variant in variants}
        range_plot(arguments.plot, title=title, y_label='answers per second', bars=bars)
    return 0


def _times_table(config: ServerConfig, times: 'list[StageTime]') -> 'ReportTable':
    from xinfer_ros.fleet.report_table import ReportTable

    rows = tuple(
        (
            time.stage.name,
            str(time.batch),
            f'{time.ms[1]:.2f}',
            f'{time.ms[0]:.2f} to {time.ms[2]:.2f}',
            f'{time.ms[1] / time.batch:.2f}',
        )
        for time in times
    )
    return ReportTable(
        title=f'Stages of {config.model} by themselves',
        columns=('stage', 'batch', 'median ms', 'quartiles ms', 'ms a request'),
        rows=rows,
    )


def _variants_table(title: str, variants: 'list[Variant]') -> 'ReportTable':
    from statistics import median

    from xinfer_ros.fleet.report_table import ReportTable

    rows = []
    for variant in variants:
        least, middle, most = variant.gain_over(variants[0])
        rows.append(
            (
                variant.name,
                f'{median(variant.per_s):.1f}',
                f'{min(variant.per_s):.1f} to {max(variant.per_s):.1f}',
                f'{middle:.2f} ({least:.2f} to {most:.2f})',
                *(f'{ms:.0f}' for ms in variant.latency_ms),
            )
        )
    return ReportTable(
        title=title,
        columns=('on', 'answers/s', 'range', f'over {variants[0].name}', 'P50 ms', 'P90', 'P99'),
        rows=tuple(rows),
    )
