# SPDX-License-Identifier: Apache-2.0
"""A process of several robots: each an executor node, with or without the replay of a bag."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xinfer_ros.config import ExecutorConfig, ReplayConfig
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.ros.node_list import robot_nodes
from xinfer_ros.ros.params_file import check_sections, resolve
from xinfer_ros.ros.process import Stop, node_arguments, run_process, share_folder
from xinfer_ros.ros.replay_topics import check_recording, topics_of_executor


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotPlan:
    """
    One robot of the process.

    :param namespace: its namespace
    :param executor: settings of its executor node
    :param replay: settings of its replay node
    :param recording: what is replayed
    """

    namespace: str
    executor: ExecutorConfig
    replay: ReplayConfig
    recording: Recording


def _build(argv: Sequence[str], stop: Stop) -> Any:
    parser = argparse.ArgumentParser(prog='robots', description=__doc__)
    parser.add_argument(
        '--robot', action='append', required=True, metavar='ID=BAG@SECONDS',
        help='a robot that replays a bag from an offset; repeat for more',
    )  # fmt: skip
    own, _ = parser.parse_known_args([arg for arg in argv if arg])
    arguments = node_arguments(argv, '', '')
    robots = [_parse(text) for text in own.robot]
    names = robot_nodes([robot for robot, _, _ in robots])
    for path in arguments.files:
        check_sections(path, names)
    shipped = share_folder() / 'episodes'
    plans = []
    for robot, bag, offset_s in robots:
        played = {'bag': bag, 'start_offset_s': offset_s}
        replay = resolve(ReplayConfig, f'/{robot}/replay', arguments.files, played)
        executor = resolve(
            ExecutorConfig, f'/{robot}/executor', arguments.files, arguments.overrides
        )
        recording = find_episode(replay.bag, shipped).recording()
        what = f'robot {robot}: episode {replay.bag}'
        check_recording(recording, topics_of_executor(executor), f'/{robot}', what)
        plans.append(
            RobotPlan(namespace=f'/{robot}', executor=executor, replay=replay, recording=recording)
        )
    return _session(plans, stop)


def _parse(text: str) -> tuple[str, str, float]:
    robot, _, played = text.partition('=')
    bag, _, offset = played.rpartition('@') if '@' in played else (played, '', '0')
    return robot, bag, float(offset)


@contextlib.contextmanager
def _session(plans: Sequence[RobotPlan], stop: Stop) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.executor_host import ExecutorHost
    from xinfer_ros.ros.replay_node import ReplayNode

    host = ExecutorHost(stop)
    executors = [host.node(plan.namespace, plan.executor) for plan in plans]
    replays = [ReplayNode(plan.namespace, plan.replay, plan.recording) for plan in plans]
    try:
        with host.running([plan.executor for plan in plans], [node.play for node in replays]):
            yield [*executors, *replays], plans[0].executor.rclpy_executor
    finally:
        for node in replays:
            node.close()


def main() -> int:
    """Run several robots in one process."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
