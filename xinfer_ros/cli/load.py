# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a load ask for: the robots, and the server that they are let loose on."""

import argparse
import os
import secrets
from collections.abc import Mapping

from xinfer_ros.cli.live import LogLines, server_settings
from xinfer_ros.cli.live_server import LiveServer
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.fleet.bench_run import BenchRun
from xinfer_ros.fleet.trace import load_workload
from xinfer_ros.ros.node_list import CONFIG_FILES, SERVER_NAME, SERVER_NAMESPACE, server_node
from xinfer_ros.ros.params_file import check_sections, files_for
from xinfer_ros.ros.process import share_folder
from xinfer_ros.ros.process_group import PARENT_VARIABLE
from xinfer_ros.sim.robot_time import RobotTimeWorkload
from xinfer_ros.sim.workload import Workload

START_TIMEOUT_S, ATTACH_TIMEOUT_S = 90.0, 15.0
EXECUTOR = '/emulated/executor'  # whose settings emulated robots follow: those of all


def live_workload(name: str) -> Workload:
    """
    Return a workload whose robots can be emulated.

    :raises ConfigError: if there is none of this name
    """
    workload = load_workload(name)
    if isinstance(workload, RobotTimeWorkload):
        raise ConfigError(
            f'workload {name} counts the rows that robots execute, which only the simulator does; '
            'take alternating, multiple, parcel, recorded, constant:MS or trace:FILE'
        )
    return workload


def live_plan(
    arguments: argparse.Namespace,
    *,
    robots: tuple[int, ...],
    seeds: tuple[int, ...],
    workload: Workload,
    warm_up_s: float,
    duration_s: float,
) -> BenchPlan:
    """
    Return how fleets are measured, as the command line says.

    :raises ConfigError: if an argument is wrong, or an episode can't be read
    """
    from xinfer_ros.episodes.sources import all_episodes, shipped_episodes

    shipped = share_folder() / 'episodes'
    episodes = all_episodes(arguments.bags or shipped_episodes(shipped), shipped)
    return BenchPlan(
        robots=robots,
        seeds=seeds,
        period_ns=round(arguments.period_ms * 1e6),
        workload=workload,
        warm_up_s=warm_up_s,
        duration_s=duration_s,
        episodes=tuple(str(episode) for episode in episodes),
        keeps_pace=not arguments.no_pace,
        robots_per_process=arguments.robots_per_process,
        start_timeout_s=START_TIMEOUT_S,
        max_lateness_ms=arguments.max_lateness_ms,
    )


def live_run(
    plan: BenchPlan, arguments: argparse.Namespace, clock: Clock, log: LogLines
) -> BenchRun:
    """Return what measures fleets, in processes that end with this one."""
    return BenchRun(
        plan,
        arguments.x_ms,
        secrets.randbits(32),
        {PARENT_VARIABLE: str(os.getpid())},
        clock,
        log.take,
    )


def live_server(
    arguments: argparse.Namespace,
    max_robots: int,
    changes: Mapping[str, object],
    clock: Clock,
    log: LogLines,
) -> LiveServer:
    """
    Return the server that is started, or the one that runs.

    :param max_robots: that it must accept
    :param changes: settings that are stronger than those of the command line
    :raises ConfigError: if a setting is wrong
    """
    config = share_folder() / 'config'
    files = (*(config / name for name in CONFIG_FILES), *arguments.params_file)
    for path in files:
        check_sections(path, [f'{SERVER_NAMESPACE}/{SERVER_NAME}', EXECUTOR])
    given = server_settings(arguments)
    if arguments.attach:
        _refuse_with_attach(arguments, given)
        spec = None
    else:
        model = {} if arguments.x_ms is None else {'model': f'fixed:{arguments.x_ms:g}'}
        if model and 'model' in given:
            raise ConfigError('--x-ms takes the model fixed:X; leave --model out')
        # every robot is served, so that load is measured and not refused; nobody looks at a page;
        # a spare engine that still imports would count as CPU time of requests
        usual = {
            'admission': 'none',
            'max_robots': max_robots,
            'http_port': 0,
            'spare_engine': False,
        }
        spec = server_node(files, {**usual, **model, **given, **changes})
    robots = tuple(files_for(EXECUTOR, files))
    timeout_s = ATTACH_TIMEOUT_S if spec is None else START_TIMEOUT_S
    return LiveServer(spec, robots, arguments.images, timeout_s, clock, log.take)


def _refuse_with_attach(arguments: argparse.Namespace, given: Mapping[str, object]) -> None:
    if given or arguments.x_ms is not None:
        raise ConfigError(
            '--attach takes a server as it is; --model, --x-ms and settings of a server go with '
            'one that is started'
        )
