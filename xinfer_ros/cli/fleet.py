# SPDX-License-Identifier: Apache-2.0
"""The commands ``xinfer fleet`` and ``xinfer replay``: real processes on recorded episodes."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, number, seconds, whole_number
from xinfer_ros.cli.console import output_console
from xinfer_ros.cli.live import LogLines, add_server, isolate, server_settings
from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.ros.node_list import DEFAULT_ROBOTS, DEFAULT_SEED, ROBOTS_PER_PROCESS, FleetPlan
from xinfer_ros.ros.params_file import resolve

if TYPE_CHECKING:
    from xinfer_ros.episodes.sources import EpisodeReference


def add_commands(commands: Commands) -> None:
    """Add ``fleet`` and ``replay``."""
    fleet = commands.add_parser(
        'fleet',
        help='run a server and robots that replay recorded episodes',
        description='Runs the node list of fleet.launch.py without ros2 launch: a server and '
        'robots that replay recorded episodes, with a live table. Exit code 0 if no robot starved '
        'after the warm-up and every request was answered, 1 if not, 2 if a setting is wrong.',
        epilog='examples:\n  xinfer fleet --robots 8 --duration 60\n'
        '  xinfer fleet --bags ~/datasets/fold_towel --robots 12   # a LeRobot data set\n'
        '  xinfer fleet --set scheduling_policy=xinfer --set decision_log=decisions',
        formatter_class=ExampleFormatter,
    )
    fleet.add_argument(
        '--robots', type=whole_number(1, 128), default=DEFAULT_ROBOTS, help='number of robots'
    )
    fleet.add_argument('--duration', type=seconds, default=30.0, help='time that counts [s]')
    fleet.add_argument('--warm-up', type=seconds, default=3.0, help='time that does not [s]')
    fleet.add_argument(
        '--bags', nargs='+', default=None, metavar='BAG',
        help='episodes of any readable format: bags, data sets, files, folders of these, '
        'PATH#NAME, or names of shipped ones (all shipped ones); robot i plays episode i mod M',
    )  # fmt: skip
    fleet.add_argument(
        '--seed', type=whole_number(0, 2**31), default=DEFAULT_SEED,
        help='seed of the place at which each robot begins its episode',
    )  # fmt: skip
    add_server(fleet)
    fleet.add_argument(
        '--robots-per-process', type=whole_number(1, 64), default=ROBOTS_PER_PROCESS,
        help='robots that share a process',
    )  # fmt: skip
    fleet.add_argument(
        '--allow-starved', type=number(0.0, 100.0), default=0.0, metavar='PERCENT',
        help='share of starved control ticks that still passes [%%]',
    )  # fmt: skip
    fleet.add_argument(
        '--kill', choices=('server', 'engine'), default='',
        help='kill a process during the run and see that every robot comes back',
    )  # fmt: skip
    fleet.add_argument('--kill-at', type=seconds, default=4.0, help='when to kill [s]')
    fleet.add_argument('--verbose', action='store_true', help='show the log of every process')
    fleet.set_defaults(run=_fleet)
    replay = commands.add_parser(
        'replay',
        help='play a recorded episode as the sensors of a robot',
        description='Publishes pictures and joint states of an episode at their recorded times, '
        'as replay.launch.py does. Bags are played as they are, other formats as the messages '
        'that a bag of them would hold.',
        epilog='examples:\n  xinfer replay transfer_cube_0 --namespace /r0\n'
        '  xinfer replay ~/datasets/fold_towel#12 --once\n'
        '  xinfer replay bag --start-offset 10 --require joint_states task   # wait for listeners',
        formatter_class=ExampleFormatter,
    )
    replay.add_argument(
        'bag', help='episode of any readable format: a path, PATH#NAME, or a shipped name'
    )
    replay.add_argument('--namespace', default='/r0', help='namespace of the robot')
    replay.add_argument('--rate', type=float, default=1.0, help='speed, 1 as recorded')
    replay.add_argument('--once', action='store_true', help='end with the episode')
    replay.add_argument('--start-offset', type=seconds, default=0.0, help='where to begin [s]')
    replay.add_argument(
        '--require', nargs='+', default=[], metavar='TOPIC',
        help='topics that must be there (exit code 2 if not), and that somebody must listen to '
        'before the first message is played',
    )  # fmt: skip
    replay.set_defaults(run=_replay)


def _fleet(arguments: argparse.Namespace) -> int:
    isolate()
    from xinfer_ros.episodes.sources import all_episodes, shipped_episodes
    from xinfer_ros.fleet.run import FleetRun, RunFailedError, RunPlan
    from xinfer_ros.ros.monitor import Monitor
    from xinfer_ros.ros.node_list import CONFIG_FILES, fleet_nodes, robot_ids
    from xinfer_ros.ros.process import share_folder
    from xinfer_ros.ros.process_group import ProcessGroup

    console = output_console()
    shipped = share_folder() / 'episodes'
    episodes = all_episodes(arguments.bags or shipped_episodes(shipped), shipped)
    config = share_folder() / 'config'
    robots = robot_ids(arguments.robots)
    plan = FleetPlan(
        robots=robots,
        bags=tuple(str(episode) for episode in episodes),
        files=(*(config / name for name in CONFIG_FILES), *arguments.params_file),
        robots_per_process=arguments.robots_per_process,
        server=server_settings(arguments),
        seed=arguments.seed,
    )
    specs = fleet_nodes(plan)
    _check_episodes(plan, episodes[: len(robots)])
    run_plan = RunPlan(
        robots=robots,
        duration_s=arguments.duration,
        warm_up_s=arguments.warm_up,
        start_timeout_s=60.0,
        allowed_starved_share=arguments.allow_starved / 100,
        kill=arguments.kill,
        kill_at_s=arguments.kill_at,
    )
    console.print(
        f'{len(robots)} robots, {len(specs)} processes, '
        f'ROS_DOMAIN_ID={os.environ["ROS_DOMAIN_ID"]}, '
        f'discovery {os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"]}; stop with Ctrl-C',
        highlight=False,
        soft_wrap=True,
    )
    log = LogLines(console, arguments.verbose)
    processes = ProcessGroup(specs, log.take)
    monitor = None
    try:
        monitor = Monitor(robots)
        faults = FleetRun(run_plan, processes, monitor, MonotonicClock(), console).run()
    except RunFailedError as error:
        log.print_kept()
        console.print(f'[red]FAILED[/] {error}', highlight=False, soft_wrap=True)
        return 1
    finally:
        if monitor is not None:
            monitor.close()
        processes.close()
    for fault in faults:
        console.print(f'[red]FAILED[/] {fault}', highlight=False, soft_wrap=True)
    if not faults:
        console.print('[green]PASSED[/]')
    return 1 if faults else 0


def _check_episodes(plan: FleetPlan, episodes: 'Sequence[EpisodeReference]') -> None:
    """Refuse episodes that lack a topic which the executor of their robot needs."""
    from xinfer_ros.ros.replay_topics import check_recording, topics_of_executor

    for robot, episode in zip(plan.robots, episodes, strict=False):
        config = resolve(ExecutorConfig, f'/{robot}/executor', plan.files, {})
        recording = episode.recording()
        try:
            needed = topics_of_executor(config)
            check_recording(recording, needed, f'/{robot}', f'episode {episode}')
        finally:
            recording.close()


def _replay(arguments: argparse.Namespace) -> int:
    isolate()
    from xinfer_ros.ros.node_list import NodeSpec
    from xinfer_ros.ros.process_group import command

    spec = NodeSpec(
        executable='replay',
        name='replay',
        namespace=arguments.namespace,
        parameters={
            'bag': arguments.bag,
            'rate': arguments.rate,
            'loop': not arguments.once,
            'start_offset_s': arguments.start_offset,
            **({'required_topics': arguments.require} if arguments.require else {}),
        },
    )
    line = command(spec)
    os.execv(line[0], line)
