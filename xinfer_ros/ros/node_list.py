# SPDX-License-Identifier: Apache-2.0
"""What a fleet consists of, said once: fleet.launch.py and ``xinfer fleet`` start this list."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xinfer_ros.config import BrainConfig, ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.params_file import check_sections, files_for, resolve

SERVER_NAME, SERVER_NAMESPACE = 'xinfer_server', '/fleet'
BRAIN_NAME = 'xinfer_brain'
CONFIG_FILES = ('server.yaml', 'executor.yaml', 'fleet.yaml')
DEFAULT_ROBOTS = 4
DEFAULT_SEED = 1
ROBOTS_PER_PROCESS = 4
SWITCHES = ('use_sim_time', 'autostart')


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
    :param bags: episodes; robot ``i`` plays ``bags[i % len(bags)]``
    :param files: parameter files, for any of the nodes
    :param robots_per_process: robots in a process; Fast DDS sees at most 32 processes a host
    :param server: parameter values of the server, stronger than the files
    :param seed: of the place at which each robot begins its episode
    """

    robots: tuple[str, ...]
    bags: tuple[str, ...]
    files: tuple[Path, ...]
    robots_per_process: int = ROBOTS_PER_PROCESS
    server: Mapping[str, object] = field(default_factory=dict)
    seed: int = DEFAULT_SEED


# Robots begin anywhere within this, modulo the length of their episode, so that a fleet does not
# move in step; longer than most episodes, so that each place is about as likely
OFFSET_S = 600.0


def robot_ids(num_robots: int) -> tuple[str, ...]:
    """Return the ids r0, r1, … of a fleet."""
    return tuple(f'r{index}' for index in range(num_robots))


def start_offsets_s(num_robots: int, seed: int) -> list[float]:
    """Return where in its episode each robot begins; equal seeds give equal places [s]."""
    drawn = random.Random(seed)
    return [round(drawn.uniform(0.0, OFFSET_S), 3) for _ in range(num_robots)]


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
    for name in of_robots:
        kind = ExecutorConfig if name.endswith('/executor') else ReplayConfig
        resolve(kind, name, plan.files, {})
    nodes = [server_node(plan.files, plan.server)]
    offsets_s = start_offsets_s(len(plan.robots), plan.seed)
    for first in range(0, len(plan.robots), plan.robots_per_process):
        indices = range(first, min(first + plan.robots_per_process, len(plan.robots)))
        group = [plan.robots[index] for index in indices]
        arguments: list[str] = []
        for index in indices:
            bag = plan.bags[index % len(plan.bags)]
            arguments += ['--robot', f'{plan.robots[index]}={bag}@{offsets_s[index]}']
        nodes.append(
            NodeSpec(
                executable='robots',
                arguments=tuple(arguments),
                files=_files_of(group, plan.files),
            )
        )
    return nodes


def server_node(files: Sequence[Path], parameters: Mapping[str, object]) -> NodeSpec:
    """
    Return the process of the server.

    :param files: parameter files, for any of the nodes
    :param parameters: parameter values, stronger than the files
    :raises ConfigError: if a setting is wrong
    """
    name = f'{SERVER_NAMESPACE}/{SERVER_NAME}'
    EngineSettings(resolve(ServerConfig, name, files, parameters)).checked()
    return NodeSpec(
        executable='server',
        name=SERVER_NAME,
        namespace=SERVER_NAMESPACE,
        files=tuple(files_for(name, files)),
        parameters=dict(parameters),
        lifecycle=True,
        respawn=True,
    )


def given_parameters(arguments: Mapping[str, str]) -> dict[str, object]:
    """
    Return what launch arguments say of an executor; an empty one leaves it to parameter files.

    :raises ConfigError: if a switch is neither true nor false: a robot must not start by a typo
    """
    given: dict[str, object] = {name: text for name, text in arguments.items() if text}
    for name in SWITCHES:
        if name in given:
            word = arguments[name].lower()
            if word not in ('true', 'false'):
                raise ConfigError(f'{name} is {arguments[name]!r}; allowed: true, false')
            given[name] = word == 'true'
    return given


def executor_node(
    namespace: str, files: Sequence[Path], parameters: Mapping[str, object]
) -> NodeSpec:
    """
    Return the process of one robot's executor, for robot.launch.py and for bringups of your own.

    :param namespace: of the robot
    :param files: parameter files; the last one wins
    :param parameters: parameter values, stronger than the files
    :raises ConfigError: if a setting is wrong or a file has nothing for this executor
    """
    space = '/' + namespace.strip('/')
    if space == '/':
        raise ConfigError('namespace is empty; a robot needs one of its own, such as /r1')
    name = f'{space}/executor'
    for path in files:
        check_sections(path, [name])
    resolve(ExecutorConfig, name, files, parameters)
    return NodeSpec(
        executable='executor',
        name='executor',
        namespace=space,
        files=tuple(files),
        parameters=dict(parameters),
        lifecycle=True,
    )


def brain_node(files: Sequence[Path], parameters: Mapping[str, object]) -> NodeSpec:
    """
    Return the process of the brain node, for brain.launch.py and for bringups of your own.

    :param files: parameter files; the last one wins
    :param parameters: parameter values, stronger than the files
    :raises ConfigError: if a setting is wrong or a file has nothing for it
    """
    name = f'{SERVER_NAMESPACE}/{BRAIN_NAME}'
    for path in files:
        check_sections(path, [name])
    resolve(BrainConfig, name, files, parameters)
    return NodeSpec(
        executable='brain',
        name=BRAIN_NAME,
        namespace=SERVER_NAMESPACE,
        files=tuple(files),
        parameters=dict(parameters),
        respawn=True,
    )


def _files_of(robots: Sequence[str], files: Sequence[Path]) -> tuple[Path, ...]:
    names = robot_nodes(robots)
    return tuple(path for path in files if any(files_for(name, [path]) for name in names))
