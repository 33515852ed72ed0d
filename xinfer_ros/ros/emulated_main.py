# SPDX-License-Identifier: Apache-2.0
"""A process of emulated robots: the load of ``xinfer bench`` and ``xinfer erc --on live``."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.memory import settle
from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.load_loop import play
from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.load_signals import DONE, PROGRESS, READY, say, wait_for_start
from xinfer_ros.ros.large_messages import make_room
from xinfer_ros.ros.params_file import resolve
from xinfer_ros.ros.process import end_with_parent, node_arguments, rclpy_executor, share_folder
from xinfer_ros.ros.process_group import PARENT_VARIABLE

if TYPE_CHECKING:
    from xinfer_ros.ros.emulated_deck import Deck

NODE = '/emulated/executor'  # whose settings they follow: those of every executor


def main() -> int:
    """Run the robots of a plan: ``emulated --plan FILE``."""
    try:
        return _run(sys.argv[1:])
    except ConfigError as error:
        print(f'xinfer_ros: {error}', file=sys.stderr)
        return 2


def _run(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog='emulated', description=__doc__)
    parser.add_argument('--plan', type=Path, required=True, help='file of the plan')
    own, _ = parser.parse_known_args(argv)
    if parent := os.environ.get(PARENT_VARIABLE):
        end_with_parent(int(parent))
    plan, arguments = LoadPlan.read(own.plan), node_arguments(argv, '', '')
    config = resolve(ExecutorConfig, NODE, arguments.files, {})
    from xinfer_ros.ros.emulated_deck import decks

    share, raw = share_folder(), plan.images == 'raw'
    packed = decks(plan.episodes, share / 'episodes', config, raw=raw)
    make_room(os.environ, share / 'config')
    return _play(plan, config, packed)


def _play(plan: LoadPlan, config: ExecutorConfig, packed: 'Sequence[Deck]') -> int:
    """Register the robots, wait for the start, play them to their end, and save the log."""
    import rclpy

    from xinfer_ros.ros.emulated_node import EmulatedNode

    rclpy.init(args=[])
    clock, executor = MonotonicClock(), rclpy_executor('events')
    node = EmulatedNode(plan, config, packed, clock)
    executor.add_node(node)

    def spin(seconds: float) -> None:
        executor.spin_once(timeout_sec=seconds)

    node.join(spin)
    say(sys.stdout, READY)
    start_ns = wait_for_start(sys.stdin)
    if start_ns is None:
        return 0
    fleet = EmulatedFleet(plan, start_ns, node.spacing_ns, node.registrar.max_commitment_steps)
    node.serve(fleet)
    settle()  # no send waits while what is there is looked through

    def tell() -> None:
        say(sys.stdout, PROGRESS, fleet.num_sent, fleet.answered)

    play(fleet, node.send, spin, tell, clock)
    fleet.log().save(Path(plan.log))
    say(sys.stdout, DONE)
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
