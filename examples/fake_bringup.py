# SPDX-License-Identifier: Apache-2.0
"""
Stands in for the bringup of a 6-joint arm with a camera, to try an executor without a robot.

Moves the joints as a joint_trajectory_controller would be told, and prints them once a second.
Run: ``.venv/bin/python examples/fake_bringup.py``, in the environment of the executor.
"""

import argparse
import contextlib
from array import array

import rclpy
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

JOINTS = ['pan', 'lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3']
HEIGHT, WIDTH = 240, 320


def main() -> None:
    """Publish joint states and pictures until Ctrl-C."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    rclpy.init()
    node = rclpy.create_node('bringup', namespace='/arm')
    positions = [0.0] * len(JOINTS)
    grey = array('B', bytes([90]) * (HEIGHT * WIDTH * 3))
    picture = Image(encoding='rgb8', height=HEIGHT, width=WIDTH, step=WIDTH * 3, data=grey)
    states = node.create_publisher(JointState, 'joint_states', 10)
    camera = node.create_publisher(Image, 'camera/color/image_raw', 1)

    def move(message: JointTrajectory) -> None:
        positions[:] = message.points[0].positions

    def feel() -> None:
        states.publish(JointState(name=JOINTS, position=array('d', positions)))

    def tell() -> None:
        print('joints:', ' '.join(f'{position:.3f}' for position in positions), flush=True)

    node.create_subscription(JointTrajectory, 'arm_controller/joint_trajectory', move, 1)
    node.create_timer(0.01, feel)
    node.create_timer(0.033, lambda: camera.publish(picture))
    node.create_timer(1.0, tell)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == '__main__':
    main()
