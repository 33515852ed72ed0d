# SPDX-License-Identifier: Apache-2.0
"""The arguments that every command of the simulator shares, and what they ask for."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xinfer_ros.cli.arguments import (
    file_path,
    names,
    seconds,
    whole_number,
)
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.rounds import RoundTask
from xinfer_ros.fleet.trace import load_workload
from xinfer_ros.predict.calibration import Calibration, load_calibration
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.setting import changes
from xinfer_ros.sim import robot_time
from xinfer_ros.sim.robot_time import ROBOT_TIME, RobotTimeWorkload
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import RECORDED, RECORDED_ABOUT, WORKLOADS, Workload
from xinfer_ros.sim.world import World

MAX_ROUNDS = 100


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a calibrated device."""
    parser.add_argument(
        '--calibration', default='paper', metavar='NAME|FILE',
        help='calibrated device: one that ships, or a .json file',
    )  # fmt: skip


def add_rounds(
    parser: argparse.ArgumentParser, *, warm_up_s: float = 30.0, end_s: float = 210.0
) -> None:
    """Add the arguments of a round's length and number."""
    group = parser.add_argument_group('rounds')
    group.add_argument(
        '--rounds', type=whole_number(1, MAX_ROUNDS), default=3, metavar='N',
        help='rounds of each fleet, with the seeds SEED, SEED + 1, ...',
    )  # fmt: skip
    group.add_argument(
        '--seed', type=whole_number(0, 2**31), default=1, help='seed of the first round'
    )
    group.add_argument('--warm-up', type=seconds, default=warm_up_s, metavar='S',
        help='simulated time that does not count [s]',
    )  # fmt: skip
    group.add_argument(
        '--end', type=seconds, default=end_s, metavar='S', help='length of a round [s]'
    )
    group.add_argument(
        '--jobs', type=whole_number(1, 256), default=None, metavar='N',
        help='processes that simulate at once; without it, one a core',
    )  # fmt: skip


def add_simulation(parser: argparse.ArgumentParser, policy: str) -> None:
    """Add the arguments of workload, policy, device and world."""
    parser.add_argument(
        '--workload', default='alternating', metavar='NAME',
        help=f'{", ".join((*WORKLOADS, RECORDED, *ROBOT_TIME))}, constant:MS, or trace:FILE',
    )  # fmt: skip
    parser.add_argument(
        '--policy', default=policy, metavar='NAME[,NAME]',
        help=f'scheduling policies with commas between: {", ".join(POLICIES)}; or all',
    )  # fmt: skip
    add_calibration(parser)
    parser.add_argument(
        '--period-ms', type=float, default=180.0, metavar='MS',
        help='TE, least time between two requests of a robot [ms]',
    )  # fmt: skip
    parser.add_argument(
        '--set', nargs='+', default=[], action='extend', metavar='KEY=VALUE', dest='changes',
        help='settings of the scheduling policy',
    )  # fmt: skip
    parser.add_argument(
        '--world', nargs='+', default=[], action='extend', metavar='KEY=VALUE',
        help='how the simulated world differs from the calibration',
    )  # fmt: skip
    add_rounds(parser)


def add_files(parser: argparse.ArgumentParser, plot: str) -> None:
    """Add the files that are written."""
    group = parser.add_argument_group('files')
    group.add_argument(
        '--json', type=file_path, default=None, metavar='FILE.json',
        help='write the records as a JSON list',
    )  # fmt: skip
    group.add_argument('--plot', type=file_path, default=None, metavar='FILE.png', help=plot)


def words() -> str:
    """Return what the names of policies and workloads mean, for the end of a help text."""
    policies = [
        f'  {name:15} {(settings.__doc__ or "").strip().splitlines()[0].rstrip(".")}'
        for name, settings in POLICIES.items()
    ]
    known: dict[str, Workload | RobotTimeWorkload] = {**WORKLOADS, **ROBOT_TIME}
    workloads = [f'  {name:15} {workload.about}' for name, workload in known.items()]
    workloads += [
        f'  {RECORDED:15} {RECORDED_ABOUT}',
        '  constant:MS     one budget for every request',
        '  trace:FILE      recorded budgets in ms, one a line or a JSON list, run through in',
        '                  turn; or sequences of xinfer episodes budgets, one a robot in turn',
    ]
    return '\n'.join(['scheduling policies:', *policies, '', 'workloads:', *workloads])


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """What the shared arguments ask for."""

    policies: tuple[PolicySettings, ...]
    workload: Workload | RobotTimeWorkload
    calibration: Calibration
    world: World
    round: Round
    seeds: tuple[int, ...]

    def tasks(
        self, settings: PolicySettings, robots: int, *, audited: bool = False
    ) -> list[RoundTask]:
        """Return the rounds of one fleet."""
        return [
            RoundTask(
                policy=settings.name,
                settings=settings,
                workload=self.workload,
                robots=robots,
                number=number + 1,
                seed=seed,
                calibration=self.calibration,
                world=self.world,
                round=self.round,
                audited=audited,
            )
            for number, seed in enumerate(self.seeds)
        ]


def simulation_plan(arguments: argparse.Namespace) -> SimulationPlan:
    """
    Return what the shared arguments ask for.

    :raises ConfigError: if one of them is wrong
    """
    calibration = load_calibration(arguments.calibration)
    chosen = names(arguments.policy, tuple(POLICIES), 'scheduling policy')
    workload = load_workload(arguments.workload)
    world = default_world(workload)
    return SimulationPlan(
        policies=tuple(settings_of(name, calibration, arguments.changes) for name in chosen),
        workload=workload,
        calibration=calibration,
        world=replace(world, **changes(world, arguments.world, 'the world')),
        round=Round(
            warm_up_s=arguments.warm_up, end_s=arguments.end, period_ms=arguments.period_ms
        ),
        seeds=seeds(arguments),
    )


def default_world(workload: Workload | RobotTimeWorkload) -> World:
    """Return the world that the figures of a workload are of."""
    return robot_time.WORLD if isinstance(workload, RobotTimeWorkload) else World()


def seeds(arguments: argparse.Namespace) -> tuple[int, ...]:
    """Return the seed of each round."""
    return tuple(range(arguments.seed, arguments.seed + arguments.rounds))


def settings_of(name: str, calibration: Calibration, pairs: Sequence[str]) -> PolicySettings:
    """
    Return the settings of a scheduling policy with changes, ``KEY=VALUE`` each.

    :raises ConfigError: if one of them does not fit
    """
    defaults = policy_settings(name, calibration)
    if len({pair.partition('=')[0] for pair in pairs}) < len(pairs):
        raise ConfigError(f'--set {" ".join(pairs)}: a key stands there twice')
    return replace(defaults, **changes(defaults, pairs, f'scheduling policy {name}'))
