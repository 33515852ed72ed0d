# SPDX-License-Identifier: Apache-2.0
"""What every node process does: arguments, set-up, spinning, an orderly end, an exit code."""

import ctypes
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from xinfer_ros.core.memory import settle
from xinfer_ros.core.repeats import set_up_log
from xinfer_ros.errors import ConfigError
from xinfer_ros.ros.large_messages import make_room
from xinfer_ros.ros.params_file import check_sections, resolve, ros_arguments
from xinfer_ros.ros.process_group import PARENT_VARIABLE
from xinfer_ros.ros.stop import Stop, stop_at_exceptions, stop_at_signals

__all__ = [
    'NodeArguments', 'Stop', 'node_arguments', 'node_settings', 'rclpy_executor', 'run_process',
    'share_folder',
]  # fmt: skip

SettingsT = TypeVar('SettingsT')
SPIN_S = 1.0  # each return costs, so it is not made for each message; a stop wakes it
NAMESPACE = re.compile(r'/|(/[A-Za-z_][A-Za-z0-9_]*)+')  # as rcl takes them
PR_SET_PDEATHSIG = 1  # of linux/prctl.h

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeArguments:
    """
    The command line of a node process.

    :param name: node name after remapping
    :param namespace: node namespace after remapping
    :param files: parameter files
    :param overrides: values given with ``-p``
    """

    name: str
    namespace: str
    files: Sequence[Path]
    overrides: dict[str, object]

    @property
    def full_name(self) -> str:
        """Return the name with its namespace."""
        return f'{self.namespace.rstrip("/")}/{self.name}'


def node_arguments(argv: Sequence[str], name: str, namespace: str) -> NodeArguments:
    """
    Read the ROS arguments of a node process.

    :param argv: without the program's name
    :param name: node name unless remapped
    :param namespace: node namespace unless remapped
    :raises ConfigError: if they can't be read
    """
    remaps = dict(arg.split(':=', 1) for arg in argv if arg.startswith('__') and ':=' in arg)
    given = remaps.get('__ns', namespace or '/')
    if not NAMESPACE.fullmatch(given):
        raise ConfigError(
            f'namespace {given!r}: allowed are a / and a name of letters, digits and _, once or '
            'several times, as in /arm'
        )
    files, overrides = ros_arguments(argv)
    return NodeArguments(
        name=remaps.get('__node', remaps.get('__name', name)),
        namespace=given,
        files=files,
        overrides=overrides,
    )


def node_settings(
    kind: type[SettingsT], argv: Sequence[str], name: str, namespace: str
) -> tuple[NodeArguments, SettingsT]:
    """
    Return the arguments and settings of a process with a single node.

    :param kind: the settings' class of config/
    :param argv: without the program's name
    :param name: node name unless remapped
    :param namespace: node namespace unless remapped
    :raises ConfigError: a wrong argument, file, key or value
    """
    arguments = node_arguments(argv, name, namespace)
    for path in arguments.files:
        check_sections(path, [arguments.full_name])
    node = arguments.full_name
    return arguments, resolve(kind, node, arguments.files, arguments.overrides)


def share_folder() -> Path:
    """
    Return the package's share folder: launch, config and the shipped episodes.

    :raises ConfigError: if the package is not installed
    """
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    for prefix in prefixes:
        folder = Path(prefix) / 'share' / 'xinfer_ros'
        if prefix and folder.is_dir():
            return folder
    raise ConfigError('share/xinfer_ros is in no prefix; run `make setup` or source the workspace')


def end_with_parent(parent_pid: int) -> None:
    """
    Let the kernel send SIGTERM to this process when its parent ends, however that comes.

    :param parent_pid: of the parent that is meant; if it is gone already, this process ends now
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)


def run_process(build: Callable[[Sequence[str], Stop], 'Any']) -> int:
    """
    Run a node process to its end and return its exit code.

    :param build: reads the settings and returns a context manager that gives (nodes, executor
        kind); called before rclpy is up, so that a wrong setting is told at once
    """
    set_up_log('[%(name)s] %(levelname)s: %(message)s')
    stop = Stop()
    stop_at_signals(stop)
    stop_at_exceptions(stop)
    if parent := os.environ.get(PARENT_VARIABLE):
        end_with_parent(int(parent))
    argv = sys.argv[1:]
    try:
        session = build(argv, stop)
        make_room(os.environ, share_folder() / 'config')
        import rclpy  # now, since a wrong setting is told sooner without it
        from rclpy.signals import SignalHandlerOptions

        rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
        with session as (nodes, kind):
            # held to the end: nodes know it only weakly, and may spin it as they end
            executor = rclpy_executor(kind)
            _spin(executor, nodes, stop)
    except ConfigError as error:
        print(f'xinfer_ros: {error}', file=sys.stderr)
        return 2
    rclpy.try_shutdown()
    return stop.code


def _spin(executor: Any, nodes: Sequence[Any], stop: Stop) -> None:
    from rclpy.task import Future

    try:
        for node in nodes:
            executor.add_node(node)
        settle()
        end = Future()
        stop.wake_with(lambda: end.set_result(None))
        while not stop.is_requested:
            executor.spin_until_future_complete(end, timeout_sec=SPIN_S)
    except Exception:
        log.exception('the process ends')
        stop.request(1)
    finally:
        stop.wake_with(lambda: None)


def rclpy_executor(kind: str) -> Any:
    """Return an executor of rclpy: ``events`` where there is one, else the single-threaded one."""
    if kind == 'events':
        try:
            from rclpy.experimental import EventsExecutor
        except ImportError:
            log.info('this rclpy has no events executor; using the single-threaded one')
        else:
            return EventsExecutor()
    from rclpy.executors import SingleThreadedExecutor

    return SingleThreadedExecutor()
