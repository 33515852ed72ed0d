# SPDX-License-Identifier: Apache-2.0
"""Bags as episodes: which topic is what, whatever it is called and however it is encoded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.pictures import decoded
from xinfer_ros.episodes.readers.bag_pass import camera_name
from xinfer_ros.episodes.readers.rosbag2 import Rosbag2Reader

from ..samples import NAMES, SHIPPED, copied, picture, shipped

TYPES = get_typestore(Stores.ROS2_KILTED)
Fields = dict[str, Any]


def _header(stamp_ns: int) -> Any:
    sec, nanosec = divmod(stamp_ns, 10**9)
    stamp = TYPES.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
    return TYPES.types['std_msgs/msg/Header'](stamp=stamp, frame_id='')


def _joints(names: list[str], *columns: list[float]) -> Fields:
    parts = dict(zip(('position', 'velocity', 'effort'), columns, strict=False))
    empty = dict.fromkeys(('position', 'velocity', 'effort'), np.empty(0))
    arrays = {key: np.array(value, float) for key, value in parts.items()}
    return {'header': _header(0), 'name': names, **empty, **arrays}


def _bag(
    folder: Path, topics: dict[str, tuple[str, Callable[[int], Fields]]], count: int = 3
) -> Path:
    """Write a bag: fields of the n-th message by topic, one every 100 ms."""
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=TYPES)
            for topic, (kind, _) in topics.items()
        }
        for index in range(count):
            for topic, (kind, make) in topics.items():
                data = TYPES.serialize_cdr(TYPES.types[kind](**make(index)), kind)
                writer.write(connections[topic], 10**18 + index * 10**8, data)
    return folder


def _read(folder: Path) -> Episode:
    return Rosbag2Reader().read(folder, 'it')


def test_shipped_episode_is_read() -> None:
    episode = shipped().read()
    assert episode.states is not None
    assert episode.commands is not None
    assert episode.states.values.shape == episode.commands.values.shape == (300, 14)
    assert episode.gripper_joints == ('left_gripper', 'right_gripper')
    assert episode.task == 'Transfer the red cube to the left arm.'
    assert [(c.name, c.encoding, c.height, c.width) for c in episode.cameras] == [
        (name, 'jpeg', 224, 320) for name in ('top', 'left_wrist', 'right_wrist')
    ]
    assert episode.efforts is None
    assert episode.warnings == ()


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_compressed_bag_gives_the_same_episode(tmp_path: Path, plugin: StoragePlugin) -> None:
    """BR-02 (d): pictures too."""
    episode = _read(copied(tmp_path / 'bag', plugin, CompressionMode.MESSAGE))
    plain = shipped(NAMES[0]).read()
    assert episode.states is not None
    assert plain.states is not None
    assert np.array_equal(episode.states.values, plain.states.values)
    late_ns = 8_500_000_000
    for one, other in zip(episode.cameras, plain.cameras, strict=True):
        assert list(one.frames(late_ns)) == list(other.frames(late_ns))


def test_frames_are_read_one_after_the_other() -> None:
    top = shipped().read().cameras[0]
    first = next(top.frames())
    assert first.time_ns == 0
    assert decoded(first).shape == (224, 320, 3)


def test_joints_keep_their_order_by_name(tmp_path: Path) -> None:
    """A driver that shuffles its joints, and one message that lacks one."""

    def states(index: int) -> Fields:
        names = [['a', 'b_gripper'], ['b_gripper', 'a'], ['a']][index]
        values = {'a': 1.0 + index, 'b_gripper': 10.0 + index}
        return _joints(names, [values[name] for name in names])

    episode = _read(
        _bag(tmp_path / 'bag', {'/joint_states': ('sensor_msgs/msg/JointState', states)})
    )
    assert episode.joints == ('a', 'b_gripper')
    assert episode.states is not None
    assert episode.states.values.tolist() == [[1.0, 10.0], [2.0, 11.0]]
    assert episode.warnings == ('/joint_states: 1 messages with other joints are left out',)


def test_commands_and_efforts_are_found(tmp_path: Path) -> None:
    def trajectory(index: int) -> Fields:
        now = TYPES.types['builtin_interfaces/msg/Duration'](sec=0, nanosec=0)
        point = TYPES.types['trajectory_msgs/msg/JointTrajectoryPoint'](
            positions=np.array([index + 0.5]), velocities=np.empty(0), accelerations=np.empty(0),
            effort=np.empty(0), time_from_start=now,
        )  # fmt: skip
        return {'header': _header(0), 'joint_names': ['b'], 'points': [point]}

    topics = {
        '/arm/joint_states': (
            'sensor_msgs/msg/JointState',
            lambda i: _joints(['a', 'b'], [i, i], [0.1, 0.2], [3.0, 4.0]),
        ),
        '/arm/controller/joint_trajectory': ('trajectory_msgs/msg/JointTrajectory', trajectory),
    }
    episode = _read(_bag(tmp_path / 'bag', topics))
    assert episode.commands is not None
    assert episode.efforts is not None
    assert episode.velocities is not None
    assert episode.commands.values[:, 1].tolist() == [0.5, 1.5, 2.5]
    assert np.all(np.isnan(episode.commands.values[:, 0]))
    assert episode.efforts.values.tolist() == [[3.0, 4.0]] * 3
    assert episode.velocities.values.tolist() == [[0.1, 0.2]] * 3


def test_raw_pictures_lose_their_padding(tmp_path: Path) -> None:
    """A driver may align its rows: step is more than the pixels need."""

    def image(index: int) -> Fields:
        padded = np.zeros((48, 64 * 3 + 8), np.uint8)
        padded[:, : 64 * 3] = picture(index).reshape(48, -1)
        return {
            'header': _header(10**9 + index), 'height': 48, 'width': 64, 'encoding': 'rgb8',
            'is_bigendian': 0, 'step': 64 * 3 + 8, 'data': padded.reshape(-1),
        }  # fmt: skip

    topics = {'/camera/color/image_raw': ('sensor_msgs/msg/Image', image)}
    (camera,) = _read(_bag(tmp_path / 'bag', topics)).cameras
    assert (camera.name, camera.encoding) == ('camera_color', 'rgb8')
    assert camera.stamps_ns.tolist() == [10**9, 10**9 + 1, 10**9 + 2]
    frames = [decoded(frame) for frame in camera.frames()]
    assert all(np.array_equal(frame, picture(index)) for index, frame in enumerate(frames))


def test_topic_of_a_changed_type_is_not_read(tmp_path: Path) -> None:
    """BR-04: it would be misread."""
    kind = 'sensor_msgs/msg/JointState'
    text, _ = TYPES.generate_msgdef(kind, ros_version=2)
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection(
            '/joint_states', kind, msgdef=text, rihs01='RIHS01_' + '0' * 64
        )
        data = TYPES.serialize_cdr(TYPES.types[kind](**_joints(['a'], [1.0])), kind)
        writer.write(connection, 1, data)
    episode = _read(tmp_path / 'bag')
    assert episode.states is None
    assert (
        '/joint_states is not read: sensor_msgs/msg/JointState has changed' in episode.warnings[0]
    )


@pytest.mark.parametrize(
    ('topic', 'name'),
    [
        ('/top/image_raw/compressed', 'top'),
        ('/cam_high/image_raw', 'cam_high'),
        ('/camera/color/image_raw', 'camera_color'),
        ('/image_raw', 'image_raw'),
        ('/left/image', 'left'),
    ],
)
def test_camera_is_named_by_its_topic(topic: str, name: str) -> None:
    assert camera_name(topic) == name


def test_only_bags_are_recognised(tmp_path: Path) -> None:
    reader = Rosbag2Reader()
    assert reader.recognises(SHIPPED / NAMES[0])
    assert reader.recognises(SHIPPED / NAMES[0] / f'{NAMES[0]}.mcap')
    assert not reader.recognises(tmp_path)
    assert not reader.recognises(tmp_path / 'missing')
