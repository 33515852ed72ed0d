# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer brain``: controllers of the brain tier in virtual time."""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, number, whole_number
from xinfer_ros.cli.brain_gateway import add_gateway, add_scripted
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.cli.simulation import add_files
from xinfer_ros.config import BrainConfig
from xinfer_ros.config.working_set import WorkingSetConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import changes, settings_from

if TYPE_CHECKING:
    from xinfer_ros.fleet.brain_runs import BrainRun

FIRST_SEED = 501  # nothing was tuned on this one and those that follow
SEEDS, QUICK_SEEDS = 8, 2
DEFAULT = BrainConfig().controller
_WORDS = (
    'controllers:\n'
    '  open         everybody is admitted\n'
    '  static:K     K episodes at once\n'
    '  aimd_usage   one more each period, fewer when the usage gauge is high: it fails\n'
    '  aimd_hits    the same by the prefixes that survive, at the start of episodes\n'
    '  working_set  the default: the contexts that fit the measured cache\n'
    'scenarios:\n'
    '  steady       robots that run one episode after another\n'
    '  capacity     32 robots; the cache loses 40 % at 10 min and has them back at 20 min\n'
    '  robots       16 robots become 48 at 10 min\n'
    '  longer       32 robots; turns append 1.5 times as much from 10 min on\n'
    '  shorter      32 robots; turns append half as much from 10 min on'
)


def add_commands(commands: Commands) -> None:
    """Add ``brain`` with its commands."""
    brain = commands.add_parser(
        'brain',
        help='admit episodes of LLM agents by what the prefix cache holds',
        description='Admits episodes of LLM agents so that the prefix cache holds their contexts.',
        epilog=(
            'examples:\n'
            '  xinfer brain sim --robots 32 --controller open --plot open.png\n'
            '  xinfer brain sim --scenario capacity --plot capacity.png\n'
            '  xinfer brain table --json brain.json --plot brain.png\n\n' + _WORDS
        ),
        formatter_class=ExampleFormatter,
    )
    actions = brain.add_subparsers(metavar='COMMAND', required=True)
    _add_table(actions)
    _add_sim(actions)
    add_gateway(actions)
    add_scripted(actions)


def _add_table(actions: Commands) -> None:
    parser = actions.add_parser(
        'table',
        help='every controller in every scenario, and whether the bars hold',
        description=(
            'Simulates 30 minutes of every controller in every scenario, with the same episodes\n'
            'for all of them, and holds the means against what is demanded. Some minutes on two\n'
            'cores. Settings were chosen on seeds 0 to 115; those from 501 on were not looked at\n'
            'before they were judged. Ends with 1 if a bar does not hold.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer brain table --json brain.json --plot brain.png\n'
            '  xinfer brain table --quick                 # two seeds\n'
            '  xinfer brain table --seeds 24 --first-seed 1000\n\n' + _WORDS
        ),
        formatter_class=ExampleFormatter,
    )
    count = parser.add_mutually_exclusive_group()
    count.add_argument(
        '--seeds', type=whole_number(1, 1000), default=None, metavar='N',
        help=f'runs of each cell; without it, {SEEDS}',
    )  # fmt: skip
    count.add_argument(
        '--quick', action='store_const', const=QUICK_SEEDS, dest='seeds',
        help=f'{QUICK_SEEDS} runs of each cell: a first impression',
    )  # fmt: skip
    parser.add_argument(
        '--first-seed', type=whole_number(0, 2**31), default=FIRST_SEED, metavar='SEED',
        help='seed of the first run; the others follow',
    )  # fmt: skip
    parser.add_argument(
        '--jobs', type=whole_number(1, 256), default=None, metavar='N',
        help='processes that simulate at once; without it, one a core',
    )  # fmt: skip
    add_files(parser, plot='draw the requests per second of every controller')
    parser.set_defaults(run=_table)


def _add_sim(actions: Commands) -> None:
    parser = actions.add_parser(
        'sim',
        help='one run, with a picture over time',
        description='Simulates one controller in one scenario.',
        epilog=(
            'examples:\n'
            '  xinfer brain sim --robots 32 --controller open --plot open.png\n'
            '  xinfer brain sim --robots 48 --controller static:20\n'
            '  xinfer brain sim --scenario capacity --seed 7 --plot capacity.png\n'
            '  xinfer brain sim --set start_share=0.3 admit_share=0.8\n\n' + _WORDS
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument('--controller', default=DEFAULT, metavar='NAME', help='one of those below')
    parser.add_argument('--scenario', default='steady', metavar='NAME', help='one of those below')
    parser.add_argument(
        '--robots', type=whole_number(1, 1000), default=None, metavar='N',
        help="fleet at the start; without it, the scenario's own, 32 for steady",
    )  # fmt: skip
    parser.add_argument('--seed', type=whole_number(0, 2**31), default=1, help='of the episodes')
    parser.add_argument(
        '--minutes', type=number(1.0, 600.0), default=30.0, metavar='MIN', help='simulated time'
    )
    parser.add_argument(
        '--partial-hits', action='store_true',
        help='a cache that still finds the beginning of a context whose end is gone; without it '
        'such a context is lost, as with hybrid attention',
    )  # fmt: skip
    parser.add_argument(
        '--set', nargs='+', default=[], action='extend', metavar='KEY=VALUE', dest='changes',
        help='settings of working_set: '
        + ', '.join(f.name for f in fields(WorkingSetConfig)),
    )  # fmt: skip
    add_files(parser, plot='draw episodes, tokens, hits and requests over time')
    parser.set_defaults(run=_sim)


def _table(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.brain_runs import run_tasks
    from xinfer_ros.fleet.brain_table import table_tasks
    from xinfer_ros.fleet.records import output_files
    from xinfer_ros.fleet.task_pool import TaskPool

    output_files(arguments.json, arguments.plot)
    first, count = arguments.first_seed, arguments.seeds or SEEDS
    tasks = table_tasks(range(first, first + count))
    with (
        RoundProgress('groups of runs', output_console()) as progress,
        TaskPool(run_tasks, arguments.jobs) as pool,
    ):
        progress.starting(len(tasks))
        groups = pool.run(tasks, progress.done)
    return tell([run for group in groups for run in group], arguments)


def tell(runs: 'Sequence[BrainRun]', arguments: argparse.Namespace) -> int:
    """Print the runs of a table and write its files; return 1 if a bar does not hold."""
    from xinfer_ros.fleet.brain_plots import controllers_plot
    from xinfer_ros.fleet.brain_records import records_of
    from xinfer_ros.fleet.brain_table import Bars, bars_table, records_table, scenarios_of
    from xinfer_ros.fleet.records import write_records

    console = output_console()
    records = records_of(runs)
    for group in scenarios_of(records):
        console.print(records_table(group).rich())
    bars = Bars(records).all()
    console.print(bars_table(bars).rich())
    if arguments.json is not None:
        write_records(arguments.json, records)
    if arguments.plot is not None:
        controllers_plot(arguments.plot, scenarios_of(records))
    return int(not all(bar.holds for bar in bars))


def _sim(arguments: argparse.Namespace) -> int:
    from xinfer_ros.brain.llm_server import ServerModel
    from xinfer_ros.fleet.brain_plots import run_plot
    from xinfer_ros.fleet.brain_records import record_of
    from xinfer_ros.fleet.brain_runs import BrainTask, TraceCache, measured, scenario_of, simulate
    from xinfer_ros.fleet.brain_table import records_table
    from xinfer_ros.fleet.records import output_files, write_records

    output_files(arguments.json, arguments.plot)
    task = BrainTask(
        controller=arguments.controller,
        scenario=scenario_of(arguments.scenario, arguments.robots, arguments.minutes),
        seed=arguments.seed,
        model=ServerModel(partial_hits=arguments.partial_hits),
        settings=_settings(arguments.controller, arguments.changes),
    )
    log = simulate(task, TraceCache())
    record = record_of([measured(task, log)], None)
    output_console().print(records_table([record]).rich())
    if arguments.json is not None:
        write_records(arguments.json, [record])
    if arguments.plot is not None:
        run_plot(arguments.plot, task, log)
    return 0


def _settings(controller: str, pairs: Sequence[str]) -> WorkingSetConfig:
    if pairs and controller != DEFAULT:
        raise ConfigError(f'--set has settings of {DEFAULT}; controller {controller} has none')
    values = changes(WorkingSetConfig, pairs, 'controller working_set')
    return settings_from(WorkingSetConfig, values, dict.fromkeys(values, '--set'))
