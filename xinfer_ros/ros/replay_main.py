# SPDX-License-Identifier: Apache-2.0
"""The process of one replay node."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from xinfer_ros.config import ReplayConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.episodes.topic import RequiredTopic
from xinfer_ros.robot.control_loop import ControlLoop
from xinfer_ros.ros.process import (
    NodeArguments,
    Stop,
    node_settings,
    run_process,
    share_folder,
)
from xinfer_ros.ros.replay_topics import check_recording


def _build(argv: Sequence[str], stop: Stop) -> Any:
    arguments, config = node_settings(ReplayConfig, argv, 'replay', '/robot')
    recording = find_episode(config.bag, share_folder() / 'episodes').recording()
    required = [RequiredTopic(name=name) for name in config.required_topics]
    check_recording(recording, required, arguments.namespace, f'episode {config.bag}')
    return _session(arguments, config, recording, stop)


@contextlib.contextmanager
def _session(
    arguments: NodeArguments, config: ReplayConfig, recording: Recording, stop: Stop
) -> Iterator[tuple[list[Any], str]]:
    from xinfer_ros.ros.replay_node import ReplayNode

    node = ReplayNode(arguments.namespace, config, recording, arguments.name)
    node.get_logger().info(
        f'{recording.num_messages} messages, {recording.duration_ns / 1e9:.1f} s, '
        f'as {arguments.namespace}'
    )

    def play(now_ns: int) -> int | None:
        due_ns = node.play(now_ns)
        if due_ns is None:
            stop.request()
        return due_ns

    loop = ControlLoop(MonotonicClock(), [play], lambda: stop.request(1))
    loop.start()
    try:
        yield [node], 'single'
    finally:
        loop.close()
        node.close()


def main() -> int:
    """Play a recording: ``ros2 run xinfer_ros replay --ros-args -r __ns:=/r1 -p bag:=FOLDER``."""
    return run_process(_build)


if __name__ == '__main__':
    raise SystemExit(main())
