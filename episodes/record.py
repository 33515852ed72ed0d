# SPDX-License-Identifier: Apache-2.0
"""
Record scripted two-arm episodes as rosbag2 (MCAP) folders.

Two simulated ViperX arms (the ALOHA scene of gym-aloha) pass a red cube: the right arm grips,
lifts and carries it, the left arm takes it over in mid-air and carries it on. Each episode is one
bag with a keyframe every 30 ms: joints, joint commands and three JPEG cameras.

Setup, the one of the episodes in this folder (Python 3.11, no GPU needed): `make setup`
installs this package with gym-aloha 0.1.5, mujoco 3.8.1, dm_control 1.0.41, numpy 2.4.6, rosbags
0.11.9 and opencv-python-headless 5.0.0.93; then::

    apt-get install libosmesa6
    .venv/bin/pip install tqdm==4.70.1
    .venv/bin/python episodes/record.py --out recorded

The same versions and arguments give the same bytes. One episode takes about two minutes of one
core, nearly all of it software rendering: MUJOCO_GL is set to osmesa here unless it is set.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from tqdm import tqdm

from xinfer_ros.physics.scene_view import JOINT_NAMES

START_NS = 1_700_000_000 * 10**9
CAMERAS = ('top', 'left_wrist', 'right_wrist')
IMAGE_HEIGHT, IMAGE_WIDTH = 224, 320
#: Pictures are rendered this much larger and averaged down: smooth edges, smaller JPEGs.
SUPERSAMPLING = 2
#: Macroblocks a picture row has; a restart marker after each keeps unchanged rows byte-equal.
RESTART_INTERVAL = IMAGE_WIDTH // 16
INSTRUCTION = 'Transfer the red cube to the left arm.'
SUCCESS_REWARD = 4

FOREVER = QosTime(2147483647, 4294967295)  # how rosbag2 spells "no limit"


def qos(depth: int, durability: QosDurability) -> Qos:
    """Return a reliable keep-last profile."""
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=depth,
        reliability=QosReliability.RELIABLE,
        durability=durability,
        deadline=FOREVER,
        lifespan=FOREVER,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=FOREVER,
        avoid_ros_namespace_conventions=False,
    )


def jpeg(rgb: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """
    Return a picture as JPEG bytes, chroma 4:2:0.

    The standard Huffman tables and one restart marker a block row make the bytes of rows that did
    not change equal from frame to frame, so the bag's zstd chunks store them once.

    :param rgb: picture ``(height, width, 3)``
    """
    options = (
        cv2.IMWRITE_JPEG_QUALITY, quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
        cv2.IMWRITE_JPEG_RST_INTERVAL, RESTART_INTERVAL,
    )  # fmt: skip
    done, data = cv2.imencode('.jpg', cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), options)
    if not done:
        raise RuntimeError(f'OpenCV did not encode a picture of shape {rgb.shape}')
    return data


def render(physics: Any, camera: str) -> NDArray[np.uint8]:
    """Return what a camera sees, RGB ``(224, 320, 3)``."""
    large = physics.render(
        height=SUPERSAMPLING * IMAGE_HEIGHT, width=SUPERSAMPLING * IMAGE_WIDTH, camera_id=camera
    )
    picture: NDArray[np.uint8] = cv2.resize(
        large, (IMAGE_WIDTH, IMAGE_HEIGHT), interpolation=cv2.INTER_AREA
    )
    return picture


class EpisodeBag:
    """The topics of one episode in a bag that is open for writing."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = get_typestore(Stores.ROS2_KILTED)
        stream = qos(10, QosDurability.VOLATILE)
        self._task = self._add(
            '/task', 'std_msgs/msg/String', qos(1, QosDurability.TRANSIENT_LOCAL)
        )
        self._states = self._add('/joint_states', 'sensor_msgs/msg/JointState', stream)
        self._commands = self._add('/joint_command', 'sensor_msgs/msg/JointState', stream)
        self._images = {
            camera: self._add(
                f'/{camera}/image_raw/compressed', 'sensor_msgs/msg/CompressedImage', stream
            )
            for camera in CAMERAS
        }

    def write_task(self, instruction: str) -> None:
        """Write the language instruction at the start of the episode."""
        self._write(self._task, START_NS, data=instruction)

    def write_states(
        self, stamp_ns: int, position: NDArray[np.float64], velocity: NDArray[np.float64]
    ) -> None:
        """Write the measured joints, each array ``(14,)``."""
        self._write_joints(self._states, stamp_ns, position, velocity)

    def write_command(self, stamp_ns: int, command: NDArray[np.float64]) -> None:
        """Write the joint targets ``(14,)`` that act until the next keyframe."""
        self._write_joints(self._commands, stamp_ns, command, np.empty(0))

    def write_image(self, stamp_ns: int, camera: str, data: NDArray[np.uint8]) -> None:
        """Write one JPEG."""
        self._write(
            self._images[camera],
            stamp_ns,
            header=self._header(stamp_ns, camera),
            format='rgb8; jpeg compressed bgr8',
            data=data,
        )

    def _write_joints(
        self,
        connection: Connection,
        stamp_ns: int,
        position: NDArray[np.float64],
        velocity: NDArray[np.float64],
    ) -> None:
        self._write(
            connection,
            stamp_ns,
            header=self._header(stamp_ns, ''),
            name=list(JOINT_NAMES),
            position=position,
            velocity=velocity,
            effort=np.empty(0),
        )

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        types = self._store.types
        sec, nanosec = divmod(stamp_ns, 10**9)
        stamp = types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
        return types['std_msgs/msg/Header'](stamp=stamp, frame_id=frame_id)

    def _add(self, topic: str, msgtype: str, profile: Qos) -> Connection:
        return self._writer.add_connection(
            topic, msgtype, typestore=self._store, offered_qos_profiles=[profile]
        )

    def _write(self, connection: Connection, stamp_ns: int, **fields: Any) -> None:
        message = self._store.types[connection.msgtype](**fields)
        data = self._store.serialize_cdr(message, connection.msgtype)
        self._writer.write(connection, stamp_ns, data)


def record(folder: Path, seed: int, quality: int, seconds: float) -> str:
    """
    Record one episode and return one line about it.

    :param folder: the bag to make; must not exist
    :raises SystemExit: the folder exists, or the transfer fails for this seed
    """
    # chooses its renderer when imported, so after main() has set MUJOCO_GL
    from xinfer_ros.physics import scripted_transfer as expert

    if folder.exists():
        raise SystemExit(f'{folder} exists: remove it, or choose another --out')
    ends_s = expert.phase_ends(seed, seconds)
    *_, last = expert.run(expert.make_environment(seed), ends_s)  # unseen first: quick, exact
    if last.reward != SUCCESS_REWARD:
        raise SystemExit(
            f'seed {seed} ends with reward {last.reward}, not {SUCCESS_REWARD}: the cube was '
            'dropped; choose another of --seeds or more --seconds'
        )
    environment = expert.make_environment(seed)
    writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    for name in ('gym-aloha', 'mujoco'):
        writer.set_custom_data(name, version(name))
    writer.set_custom_data('seed', str(seed))
    commands = []
    with writer:
        bag = EpisodeBag(writer)
        bag.write_task(INSTRUCTION)
        total = expert.num_keyframes(seconds)
        keyframes = expert.run(environment, ends_s)
        progress = tqdm(keyframes, folder.name, total, unit='keyframe', mininterval=2.0)
        for index, keyframe in enumerate(progress):
            stamp_ns = START_NS + index * expert.KEYFRAME_NS
            bag.write_states(stamp_ns, keyframe.position, keyframe.velocity)
            bag.write_command(stamp_ns, keyframe.command)
            for camera in CAMERAS:
                picture = jpeg(render(environment.physics, camera), quality)
                bag.write_image(stamp_ns, camera, picture)
            commands.append(keyframe.command)
    environment.physics.free()
    size = sum(path.stat().st_size for path in folder.iterdir())
    switches = describe_switches(np.array(commands), expert.KEYFRAME_NS)
    return (
        f'{folder.name}: {len(commands)} keyframes, {size / 1e6:.2f} MB, '
        f'final reward {keyframe.reward}, switches: {switches}'
    )


def describe_switches(commands: NDArray[np.float64], keyframe_ns: int) -> str:
    """
    Return when the grippers were told to open or close, in words.

    :param commands: joint targets ``(keyframes, 14)``
    """
    found = [
        (int(row), JOINT_NAMES[column].removesuffix('_gripper'), commands[row, column])
        for column in (6, 13)
        for row in np.flatnonzero(np.diff(commands[:, column])) + 1
    ]
    return ', '.join(
        f'{row * keyframe_ns / 1e9:.2f} s {arm} {"opens" if opening > 0.5 else "closes"}'
        for row, arm, opening in sorted(found)
    )


def bounded(kind: type, low: float, high: float) -> Callable[[str], Any]:
    """Return an argparse type that takes ``low`` to ``high`` and says so otherwise."""

    def parse(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'{text} is not within {low} to {high}')
        return value

    parse.__name__ = kind.__name__
    return parse


def main(argv: Sequence[str] | None = None) -> None:
    """Record the episodes that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--out', type=Path, default=Path(__file__).parent, metavar='FOLDER',
        help='where the folders transfer_cube_<seed> are made (default: beside this script)',
    )  # fmt: skip
    parser.add_argument(
        '--seeds', type=bounded(int, 0, 2**32 - 1), nargs='+', default=[0, 1, 2], metavar='N',
        help='one episode each: place of the cube and pace of the phases (default: 0 1 2)',
    )  # fmt: skip
    parser.add_argument(
        '--quality', type=bounded(int, 1, 100), default=65, metavar='Q',
        help='JPEG quality, 1 to 100 (default: 65, three episodes of 9 s in 6.9 MB)',
    )  # fmt: skip
    parser.add_argument(
        '--seconds', type=bounded(float, 6, 60), default=9.0, metavar='S',
        help='length of an episode, 6 to 60 s; the motion is stretched to it (default: 9)',
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    os.environ.setdefault('MUJOCO_GL', 'osmesa')
    for seed in arguments.seeds:
        folder = arguments.out / f'transfer_cube_{seed}'
        print(record(folder, seed, arguments.quality, arguments.seconds), flush=True)


if __name__ == '__main__':
    main()
