# SPDX-License-Identifier: Apache-2.0
"""
What an observation with a raw picture costs to publish, beside an element-wise assignment.

Run: ``.venv/bin/python benchmarks/observation_message.py``. CASES TR-03 asks for a median of at
most 5 ms for a picture of 921,600 bytes, and at most 10 % of a core at 10 Hz.
"""

import os
import statistics
import time
from array import array
from collections.abc import Callable
from typing import Any

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 101))

import rclpy
from sensor_msgs.msg import Image

from xinfer_ros.msg import Observation
from xinfer_ros.ros import qos
from xinfer_ros.ros.convert import camera_frame

ROUNDS = 100


def median_ms(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the median wall time and the CPU time of a piece of work [ms]."""
    times = []
    cpu = time.process_time()
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times), 1e3 * (time.process_time() - cpu) / rounds


def main() -> None:
    """Measure both ways in turn."""
    rclpy.init()
    node = rclpy.create_node('benchmark')
    publisher = node.create_publisher(Observation, 'observation', qos.OBSERVATION)
    picture = Image(encoding='rgb8', height=480, width=640, step=1920)
    picture.data = array('B', bytes(921_600))
    as_list = list(picture.data)

    def ours() -> None:
        frame = camera_frame('top', picture, compressed=False)
        publisher.publish(Observation(images=[frame]))

    def element_wise() -> None:
        picture.data = as_list

    wall_ms, cpu_ms = median_ms(ours, ROUNDS)
    slow_ms, _ = median_ms(element_wise, 10)
    print(f'built and published: {wall_ms:.2f} ms, {cpu_ms:.2f} ms CPU, {cpu_ms:.1f} % at 10 Hz')
    print(
        f'assigning a list, for comparison: {slow_ms:.1f} ms, {slow_ms / wall_ms:.0f} times more'
    )
    node.destroy_node()
    rclpy.shutdown()


if __name__ == '__main__':
    main()
