# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer bench``: emulated robots against a live server, peers beside it."""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from xinfer_ros.cli.arguments import (
    Commands,
    ExampleFormatter,
    file_path,
    names,
    seconds,
    whole_number,
    whole_numbers,
)
from xinfer_ros.cli.console import StatusLine, output_console
from xinfer_ros.cli.live import LogLines, add_server, isolate
from xinfer_ros.cli.load_arguments import add_load
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from xinfer_ros.fleet.bench_plan import BenchPlan
    from xinfer_ros.fleet.bench_run import BenchRun, FleetResult
    from xinfer_ros.fleet.bench_system import BenchSystem
    from xinfer_ros.fleet.machine_facts import MachineFacts

PEERS = ('openpi', 'floor')
MAX_ROBOTS = 256
SECOND = 1.0  # that the report shows unit by unit unless told otherwise


def add_commands(commands: Commands) -> None:
    """Add ``bench``."""
    parser = commands.add_parser(
        'bench',
        help='measure a live server under emulated robots, with peers beside it',
        description=(
            'Lets emulated robots loose on a server over ROS 2 and measures what they see: each\n'
            'sends recorded pictures, waits for its chunk, and asks again after TE, or when the\n'
            'chunk comes if that is later. Nothing is printed if the load generator itself was\n'
            'late. Peers are other servers, driven by the same robots in turn on this machine.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer bench --robots 8,16 --duration 20\n'
            '  xinfer bench --robots 32 --x-ms 0 --against openpi,floor --json bench.json\n'
            '  xinfer bench --robots 4,8,12 --workload parcel --rounds 3 --html bench.html\n'
            '  xinfer bench --robots 8 --images raw --set scheduling_policy=fifo\n'
            '  xinfer bench --robots 8 --attach                 # a server that runs already\n\n'
            'peers:\n'
            "  openpi  a loop as openpi's websocket server: raw pictures, one request at a time\n"
            '  floor   bytes over TCP and a fixed answer: what any server costs at least\n\n'
            'exit code: 0 measured; 1 nothing, or not all, was measured, or an answer was wrong;\n'
            '2 a mistake that can be mended'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--robots', type=whole_numbers(1, MAX_ROBOTS), default=(8,), metavar='N[,N]',
        help='sizes of the fleets',
    )  # fmt: skip
    parser.add_argument(
        '--workload', default='constant:180', metavar='NAME',
        help='response budgets, those of the simulator: alternating, multiple, parcel, recorded, '
        'constant:MS, trace:FILE',
    )  # fmt: skip
    parser.add_argument(
        '--period-ms', type=float, default=180.0, metavar='MS',
        help='TE, least time between two requests of a robot [ms]',
    )  # fmt: skip
    parser.add_argument('--duration', type=seconds, default=20.0, help='time that counts [s]')
    parser.add_argument('--warm-up', type=seconds, default=3.0, help='time that does not [s]')
    parser.add_argument(
        '--rounds', type=whole_number(1, 100), default=1, metavar='N',
        help='rounds of each fleet, with the seeds SEED, SEED + 1, ...',
    )  # fmt: skip
    parser.add_argument(
        '--seed', type=whole_number(0, 2**31), default=1,
        help='seed of the first round: phases of the robots, places in their budgets',
    )  # fmt: skip
    parser.add_argument(
        '--against', default='', metavar='PEER[,PEER]',
        help=f'peers that are measured too: {", ".join(PEERS)}, or all; they take model time X',
    )  # fmt: skip
    add_server(parser)
    add_load(parser)
    files = parser.add_argument_group('files')
    files.add_argument(
        '--json', type=file_path, default=None, metavar='FILE.json', help='write the records'
    )
    files.add_argument(
        '--html', type=file_path, default=None, metavar='FILE.html',
        help='write the report, one page with everything in it',
    )  # fmt: skip
    files.add_argument(
        '--png', type=file_path, default=None, metavar='FOLDER', help='write its pictures'
    )
    files.add_argument(
        '--second', type=seconds, default=SECOND, metavar='S',
        help='which second of the last fleet the report shows unit by unit, after its warm-up',
    )  # fmt: skip
    parser.set_defaults(run=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    isolate(attach=arguments.attach)
    from xinfer_ros.cli.load import live_plan, live_run, live_server, live_workload
    from xinfer_ros.fleet.bench_table import bench_table, refusal_lines
    from xinfer_ros.fleet.machine_facts import machine_facts
    from xinfer_ros.fleet.records import write_records

    _check(arguments)
    facts = machine_facts()
    console, clock = output_console(), MonotonicClock()
    log = LogLines(console, arguments.verbose)
    plan = live_plan(
        arguments,
        robots=arguments.robots,
        seeds=tuple(range(arguments.seed, arguments.seed + arguments.rounds)),
        workload=live_workload(arguments.workload),
        warm_up_s=arguments.warm_up,
        duration_s=arguments.duration,
    )
    run = live_run(plan, arguments, clock, log)
    with tempfile.TemporaryDirectory(prefix='xinfer_bench_') as folder:
        changes = _recording(arguments, Path(folder))
        server = live_server(arguments, max(plan.robots), changes, clock, log)
        systems = [server, *_peers(arguments)]
        measured = _Measured(results=[], failures=[])
        with StatusLine(console) as status:
            for system in systems:
                _measure(system, plan, run, status, measured, log)
        records = [result.record for result in measured.results]
        if records:
            console.print(bench_table(_title(arguments), records).rich())
        for line in refusal_lines(records):
            console.print(line, highlight=False, soft_wrap=True)
        if arguments.json is not None:
            write_records(arguments.json, records)
        if records:
            _report(arguments, measured.results, facts, changes.get('decision_log'))
    for failure in measured.failures:
        console.print(f'[red]NOT MEASURED[/] {escape(failure)}', highlight=False, soft_wrap=True)
    wrong = sum(record.wrong for record in records)
    if wrong:
        console.print(f'[red]FAILED[/] {wrong} answers were meant for somebody else')
    return 1 if measured.failures or wrong else 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what can't be meant, before anything starts."""
    from xinfer_ros.fleet.records import output_file

    if arguments.against and arguments.x_ms is None:
        raise ConfigError('peers take the same model time as ours; give it with --x-ms, as 0 or 5')
    if arguments.second > max(arguments.duration - 1.0, SECOND):
        raise ConfigError(
            f'--second {arguments.second:g}: a fleet is measured for {arguments.duration:g} s; '
            'the second must lie within'
        )
    for path, suffix in ((arguments.json, '.json'), (arguments.html, '.html')):
        if path is not None:
            output_file(path, suffix)
    if arguments.png is not None and not arguments.png.is_dir():
        raise ConfigError(f'--png {arguments.png}: there is no such folder; make it first')


def _title(arguments: argparse.Namespace) -> str:
    model = 'its own model time' if arguments.x_ms is None else f'X = {arguments.x_ms:g} ms'
    return (
        f'{arguments.workload}, TE {arguments.period_ms:g} ms, {model}, '
        f'{arguments.duration:g} s after {arguments.warm_up:g} s of warm-up'
    )


def _recording(arguments: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return the setting that lets our server keep what its lanes did, if a report shows it."""
    wanted = arguments.html is not None or arguments.png is not None
    return {'decision_log': str(folder / 'log')} if wanted and not arguments.attach else {}


def _peers(arguments: argparse.Namespace) -> 'list[BenchSystem]':
    if not arguments.against:
        return []
    from xinfer_ros.fleet.peers.systems import peer_systems
    from xinfer_ros.ros.process import share_folder

    chosen = names(arguments.against, PEERS, 'peer')
    return peer_systems(chosen, arguments.x_ms, share_folder() / 'episodes')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What was measured, and why something was not."""

    results: 'list[FleetResult]'
    failures: list[str]


def _measure(
    system: 'BenchSystem',
    plan: 'BenchPlan',
    run: 'BenchRun',
    status: StatusLine,
    measured: _Measured,
    log: LogLines,
) -> None:
    """Measure every fleet on one system, which lives as long as that takes."""
    from xinfer_ros.fleet.bench_run import LateGeneratorError
    from xinfer_ros.fleet.bench_system import BenchFailedError

    status.step(f'starting {system.name}')
    try:
        system.start()
        for robots in plan.robots:
            for seed in plan.seeds:
                status.step(
                    f'{system.name}, {robots} robots, seed {seed}: '
                    f'{plan.warm_up_s + plan.duration_s:g} s'
                )
                try:
                    result = run.measure(system, robots, seed, status.tell)
                except LateGeneratorError as error:
                    measured.failures.append(str(error))
                else:
                    measured.results.append(result)
    except BenchFailedError as error:
        log.print_kept()
        measured.failures.append(f'{system.name}: {error}')
    finally:
        system.close()


def _report(
    arguments: argparse.Namespace,
    results: 'Sequence[FleetResult]',
    facts: 'MachineFacts',
    decision_log: str | None,
) -> None:
    """Write the page and the pictures that are wanted."""
    if arguments.html is None and arguments.png is None:
        return
    from xinfer_ros.fleet.bench_report import BenchReport, write_page, write_pictures

    report = BenchReport.of(
        results,
        title=_title(arguments),
        command=f'xinfer {shlex.join(sys.argv[1:])}',
        facts=facts,
        log_folder=None if decision_log is None else Path(decision_log),
        second=arguments.second,
    )
    if arguments.html is not None:
        write_page(arguments.html, report)
    if arguments.png is not None:
        write_pictures(arguments.png, report)
