# SPDX-License-Identifier: Apache-2.0
"""What a fleet consists of, said once: fleet.launch.py and ``xinfer fleet`` start this list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xinfer_ros.config import ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.params_file import check_sections, files_for, resolve

SERVER_NAME, SERVER_NAMESPACE = 'xinfer_server', '/fleet'
CONFIG_FILES = ('server.yaml', 'executor.yaml', 'fleet.yaml')
DEFAULT_ROBOTS = 4
ROBOTS_PER_PROCESS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """
    One process to start.

    :param executable: its name in lib/xinfer_ros, of module ``xinfer_ros.ros.<executable>_main``
    :param name: node name; empty if the process holds several nodes
    :param namespace: node namespace
    :param arguments: its own arguments
    :param files: parameter files
    :param parameters: parameter values, stronger than the files
    :param lifecycle: whether it is a managed node
    :param respawn: whether it is started again when it ends by itself
    """

    executable: str
    name: str = ''
    namespace: str = ''
    arguments: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    lifecycle: bool = False
    respawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """
    A server and robots that replay recorded episodes.

    :param robots: ids of the robots
    :param bags: recordings; robot ``i`` plays ``bags[i % len(bags)]``
    :param files: parameter files, for any of the nodes
    :param robots_per_process: robots in a process; Fast DDS sees at most 32 processes a host
    :param server: parameter values of the server, stronger than the files
    """

    robots: tuple[str, ...]
    bags: tuple[str, ...]
    files: tuple[Path, ...]
    robots_per_process: int = ROBOTS_PER_PROCESS
    server: Mapping[str, object] = field(default_factory=dict)


# Robots start at different places of their episodes, so that a fleet does not move in step
OFFSET_S = 0.7


def robot_ids(num_robots: int) -> tuple[str, ...]:
    """Return the ids r0, r1, … of a fleet."""
    return tuple(f'r{index}' for index in range(num_robots))


def robot_nodes(robots: Sequence[str]) -> list[str]:
    """Return the nodes of robots that replay recordings, with their namespaces."""
    return [f'/{robot}/{node}' for robot in robots for node in ('executor', 'replay')]


def fleet_nodes(plan: FleetPlan) -> list[NodeSpec]:
    """
    Return the processes of a fleet: the server, then the robots.

    Every setting of every node is checked here, so that nothing is started with a wrong one.

    :raises ConfigError: if a setting is wrong, a parameter file is for none of the nodes, or there
        is no robot or bag
    """
    if not plan.robots or not plan.bags:
        raise ConfigError('a fleet needs at least one robot and one bag')
    server = f'{SERVER_NAMESPACE}/{SERVER_NAME}'
    of_robots = robot_nodes(plan.robots)
    for path in plan.files:
        check_sections(path, [server, *of_robots], complete=True)
    config = resolve(ServerConfig, server, plan.files, plan.server)
    EngineSettings(config).checked()
    for name in of_robots:
        kind = ExecutorConfig if name.endswith('/executor') else ReplayConfig
        resolve(kind, name, plan.files, {})
    nodes = [
        NodeSpec(
            executable='server',
            name=SERVER_NAME,
            namespace=SERVER_NAMESPACE,
            files=tuple(files_for(server, plan.files)),
            parameters=dict(plan.server),
            lifecycle=True,
            respawn=True,
        )
    ]
    for first in range(0, len(plan.robots), plan.robots_per_process):
        indices = range(first, min(first + plan.robots_per_process, len(plan.robots)))
        group = [plan.robots[index] for index in indices]
        arguments: list[str] = []
        for index in indices:
            bag = plan.bags[index % len(plan.bags)]
            arguments += ['--robot', f'{plan.robots[index]}={bag}@{index * OFFSET_S:.1f}']
        nodes.append(
            NodeSpec(
                executable='robots',
                arguments=tuple(arguments),
                files=_files_of(group, plan.files),
            )
        )
    return nodes


def _files_of(robots: Sequence[str], files: Sequence[Path]) -> tuple[Path, ...]:
    names = robot_nodes(robots)
    return tuple(path for path in files if any(files_for(name, [path]) for name in names))
