# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer calibrate``: measure a model on the device of this machine."""

import argparse
from dataclasses import fields
from typing import Any

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path, whole_number
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.config import ServerConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import settings_from

MAX_WORKERS = 8
MAX_BATCH = 8
BATCHES = (1, 1, 4)
# option: setting of the server that it stands for
SETTINGS = {
    'device': 'device',
    'dtype': 'model_dtype',
    'rtc_mode': 'rtc_mode',
    'rtc_jacobian': 'rtc_jacobian',
    'rtc_schedule': 'rtc_schedule',
    'torch_threads': 'torch_threads',
    'model_seed': 'model_seed',
}
ABOUT = """\
Measures how long the stages of a model take on the device of this machine, and writes the
calibration that a server's scheduling decisions rest on:
- each stage alone: its work W and the overhead h of a launch,
- every combination of units at once, up to --workers of each stage: how much they slow each
  other down, the rate table,
- batches up to --batches of each stage, and of the whole pipeline,
- a real front end and engine asked by one robot: what happens around the stages.
Each load is put on the device in many short runs, in turn with all others; the quickest quarter
of its runs counts, since other work on the machine only ever makes a run slower. A rate that
rises with the load is noise: it is levelled with its neighbours. Every other run is kept out of
a second fit that is compared with the rest: the fit error."""
EPILOG = """\
how long it takes:
  a round makes (V + 1)(P + 1)(A + 1) - 1 short runs for --workers V P A, and a few for batches;
  each lasts until one stage has run ten units. The tiny model on two cores takes two to three
  minutes. Each further worker multiplies the runs, so there are no more than the device can use:
  by default 1 1 1 on a CPU, where a stage keeps a core busy, and 2 2 3 on a GPU.
  Leave the machine alone meanwhile; the table says if it was disturbed.

when to repeat it:
  after any change of the GPU or CPU, driver, torch, model, --dtype, --rtc-jacobian or
  --torch-threads: a server refuses a file of another model or device. Also if `xinfer audit`
  shows a bias, or the diagnostics of the server a correction far from 1.

examples:
  xinfer calibrate --model tiny --output tiny.json --plot
  xinfer calibrate --model tiny --rounds 10 --batches 1 1 1 --output quick.json
  xinfer calibrate --model /data/pi05 --workers 2 2 4 --batches 1 1 8 --output pi05.json
  xinfer calibrate --model /data/pi05 --rtc-jacobian vjp --output pi05_vjp.json

then, in the parameters of the server:
  calibration: pi05.json

models:
  %(models)s, or the folder of a checkpoint; `xinfer models` tells more
"""


def add_commands(commands: Commands) -> None:
    """Add ``calibrate``."""
    from xinfer_ros.models.registry import model_names

    parser = commands.add_parser(
        'calibrate',
        help='measure a model on this device: what the scheduler must know of it',
        description=ABOUT,
        epilog=EPILOG.replace('%(models)s', ', '.join(model_names())),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--model', required=True, metavar='NAME|DIR', help='model that is measured, see below'
    )
    parser.add_argument(
        '--output', type=file_path, required=True, metavar='FILE.json', help='file to write'
    )
    parser.add_argument(
        '--plot', action='store_true',
        help='draw how stages slow each other and what batches cost, FILE.png beside the file',
    )  # fmt: skip
    _add_thoroughness(parser)
    group = parser.add_argument_group('model, as the server will run it')
    known = {field.name: field for field in fields(ServerConfig)}
    for option, setting in SETTINGS.items():
        field = known[setting]
        group.add_argument(
            f'--{option.replace("_", "-")}', type=type(field.default), default=field.default,
            choices=field.metadata['choices'] or None, metavar=None, help=field.metadata['doc'],
        )  # fmt: skip
    parser.set_defaults(run=_calibrate)


def _add_thoroughness(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('what is measured')
    group.add_argument(
        '--workers', type=whole_number(1, MAX_WORKERS), nargs=3, default=None,
        metavar=('V', 'P', 'A'),
        help='units at once of ViT, Prefill and Action (default: by the device, see below)',
    )  # fmt: skip
    group.add_argument(
        '--batches', type=whole_number(1, MAX_BATCH), nargs=3, default=None,
        metavar=('V', 'P', 'A'),
        help='requests in the largest unit of ViT, Prefill and Action, of which Action gains most '
        f'(default: {" ".join(str(size) for size in BATCHES)})',
    )  # fmt: skip
    group.add_argument(
        '--rounds', type=whole_number(1, 10_000), default=60, metavar='N',
        help='short runs of each load',
    )  # fmt: skip
    group.add_argument(
        '--requests', type=whole_number(1, 100_000), default=200, metavar='N',
        help='requests that the server is asked',
    )  # fmt: skip
    group.add_argument(
        '--seed', type=whole_number(0, 2**31), default=1, help='of the order of the runs'
    )


def _calibrate(arguments: argparse.Namespace) -> int:
    from xinfer_ros.core.clock import MonotonicClock, today
    from xinfer_ros.engine.calibrate_session import CalibrationPlan, calibrate
    from xinfer_ros.fleet.calibration_report import (
        batches_table,
        calibration_plot,
        result_lines,
        stages_table,
    )
    from xinfer_ros.fleet.records import output_file
    from xinfer_ros.predict.calibration import save_calibration

    path = output_file(arguments.output, '.json')
    plan = CalibrationPlan(
        config=_config(arguments),
        workers=tuple(arguments.workers) if arguments.workers else None,
        batches=tuple(arguments.batches or BATCHES),
        rounds=arguments.rounds,
        requests=arguments.requests,
        seed=arguments.seed,
        date=today(),
    )
    console = output_console()
    with RoundProgress('runs', console) as progress:
        result = calibrate(plan, MonotonicClock(), progress)
    save_calibration(result.calibration, path)
    console.print(stages_table(result).rich())
    console.print(batches_table(result).rich())
    for line in result_lines(result):
        console.print(line, highlight=False, soft_wrap=True)
    if arguments.plot:
        calibration_plot(path.with_suffix('.png'), result)
    console.print(f'written: {path}', highlight=False, soft_wrap=True)
    return 0


def _config(arguments: argparse.Namespace) -> ServerConfig:
    values: dict[str, Any] = {'model': arguments.model}
    values |= {name: getattr(arguments, option) for option, name in SETTINGS.items()}
    origins = {name: f'--{option.replace("_", "-")}' for option, name in SETTINGS.items()}
    if not arguments.model:
        raise ConfigError('--model is empty; name a model or the folder of a checkpoint')
    return settings_from(ServerConfig, values, origins)
