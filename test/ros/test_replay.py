# SPDX-License-Identifier: Apache-2.0
"""Replay on a real graph: everything arrives, or the start is refused."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sensor_msgs.msg import CompressedImage, JointState
from std_msgs.msg import String

from xinfer_ros.episodes.conversion import make_writer
from xinfer_ros.episodes.reader import no_progress
from xinfer_ros.episodes.sources import find_episode

from .graph import EPISODES, Graph

TYPES = get_typestore(Stores.ROS2_KILTED)
BAG = EPISODES / 'transfer_cube_0'
DEEP = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
TOP = 'top/image_raw/compressed'


def _qos(reliability: QosReliability, durability: QosDurability) -> list[Qos]:
    unlimited = QosTime(2147483647, 4294967295)
    return [
        Qos(
            QosHistory.KEEP_LAST, 10, reliability, durability, unlimited, unlimited,
            QosLiveliness.AUTOMATIC, unlimited, False,
        )
    ]  # fmt: skip


def _written(folder: Path, left_out: str = '', hashes: dict[str, str] | None = None) -> Path:
    """
    Write the shipped bag anew, twice as slow, so that it is longer than 10 s.

    Pictures were offered best effort there, and a topic of a type that nobody has lies beside.
    """
    odd = 'my_msgs/msg/Odd'
    store = get_typestore(Stores.ROS2_KILTED)
    store.register(get_types_from_msg('int32 value', odd))
    with (
        Reader(BAG) as reader,
        Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer,
    ):
        connections = {}
        for known in reader.connections:
            loose = known.topic.endswith('compressed')
            reliability = QosReliability.BEST_EFFORT if loose else QosReliability.RELIABLE
            latched = known.topic == '/task'
            durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
            if known.topic != left_out:
                connections[known.id] = writer.add_connection(
                    known.topic,
                    known.msgtype,
                    msgdef=known.msgdef.data,
                    rihs01=(hashes or {}).get(known.topic, known.digest),
                    offered_qos_profiles=_qos(reliability, durability),
                )
        unknown = writer.add_connection('/odd', odd, typestore=store)
        for known, stamp_ns, data in reader.messages():
            if known.id in connections:
                later_ns = stamp_ns + (stamp_ns - reader.start_time)
                writer.write(connections[known.id], later_ns, data)
        for index in range(10):
            writer.write(unknown, reader.start_time + index, b'\0\1\0\0\0\0\0\0')
    return folder


def test_task_is_known_and_every_picture_arrives_when_starting_later(
    graph: Graph, tmp_path: Path
) -> None:
    """BR-01: best-effort pictures and a task from before the start, played from 10 s on."""
    bag = _written(tmp_path / 'bag')
    with Reader(bag) as reader:
        start_ns = reader.start_time + 10 * 10**9
        expected = sum(
            stamp_ns >= start_ns and known.topic == f'/{TOP}'
            for known, stamp_ns, _ in reader.messages()
        )
    order: list[str] = []
    graph.node.create_subscription(String, '/r/task', lambda _: order.append('task'), LATCHED)
    graph.node.create_subscription(
        CompressedImage, f'/r/{TOP}', lambda _: order.append('picture'), DEEP
    )
    replay = graph.run(
        'replay_main', '--ros-args', '-r', '__ns:=/r', '-p', f'bag:={bag}', '-p', 'loop:=false',
        '-p', 'start_offset_s:=10.0', '-p', 'rate:=4.0', '-p', f'required_topics:=[task, {TOP}]',
    )  # fmt: skip
    graph.until(lambda: replay.process.poll() is not None, 'the replay ends')
    graph.until(lambda: len(order) > expected, 'everything has arrived')
    assert order[0] == 'task'
    assert Counter(order) == {'task': 1, 'picture': expected}
    assert '/odd is not played: message type my_msgs/msg/Odd is not installed' in replay.output


def test_whatever_is_read_is_sent_or_dropped_for_a_reason(graph: Graph, tmp_path: Path) -> None:
    """BR-04: 1511 read = 1501 sent + 10 of a type that is not installed; all sent arrive."""
    bag = _written(tmp_path / 'bag')
    states: list[JointState] = []
    graph.node.create_subscription(JointState, '/r/joint_states', states.append, DEEP)
    replay = graph.run(
        'replay_main', '--ros-args', '-r', '__ns:=/r', '-p', f'bag:={bag}', '-p', 'loop:=false',
        '-p', 'rate:=10.0', '-p', 'required_topics:=[joint_states]',
    )  # fmt: skip
    graph.until(lambda: replay.process.poll() is not None, 'the replay ends')
    graph.until(lambda: len(states) >= 300, 'every joint state has arrived')
    assert len(states) == 300
    (words,) = re.findall(r'(\d+) messages read = (\d+) messages played \+ (\d+) d', replay.output)
    assert tuple(map(int, words)) == (1511, 1501, 10)


def test_fleet_on_a_bag_without_the_wrist_camera_does_not_start(
    graph: Graph, tmp_path: Path
) -> None:
    """BR-04: exit 2 before anything is started, and the missing topic is named."""
    bag = _written(tmp_path / 'bag', left_out='/left_wrist/image_raw/compressed')
    done = graph.command('fleet', '--model', 'echo', '--robots', '1', '--bags', str(bag))
    assert done.returncode == 2
    assert 'lacks left_wrist/image_raw/compressed (sensor_msgs/msg/CompressedImage)' in done.stderr
    assert done.stdout == ''
    robots = graph.run('robots_main', '--robot', f'r0={bag}@0')  # as a launch file starts them
    graph.until(lambda: robots.process.poll() is not None, 'the process ends')
    assert robots.process.returncode == 2
    assert 'robot r0: episode' in robots.output


def test_replay_of_a_changed_type_is_refused_if_it_is_required(
    graph: Graph, tmp_path: Path
) -> None:
    """BR-04: by its hash."""
    bag = _written(tmp_path / 'bag', hashes={'/joint_states': 'RIHS01_' + '0' * 64})
    done = graph.command('fleet', '--model', 'echo', '--robots', '1', '--bags', str(bag))
    assert done.returncode == 2
    assert 'sensor_msgs/msg/JointState of /joint_states has changed' in done.stderr
    done = graph.command('replay', str(bag), '--once', '--rate', '20', '--require', 'joint_states')
    assert done.returncode == 2
    done = graph.command('replay', str(bag), '--once', '--rate', '20')
    assert done.returncode == 0
    assert '/joint_states is not played: its type' in done.stdout + done.stderr


@pytest.mark.parametrize('format', ['hdf5', 'lerobot'])
def test_fleet_plays_every_format(graph: Graph, tmp_path: Path, format: str) -> None:
    """Robots of a fleet on a file or data set, made into messages on the fly."""
    episode = find_episode(str(BAG), EPISODES).read()
    path = tmp_path / ('bag.hdf5' if format == 'hdf5' else 'set')
    make_writer(format).write([episode], path, no_progress)
    done = graph.command(
        'fleet', '--model', 'echo', '--robots', '2', '--bags', str(path), '--warm-up', '1',
        '--duration', '4', '--allow-starved', '5',
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ' 0 unanswered, 0 misaddressed' in done.stdout


def test_bag_cut_short_is_played_to_its_last_whole_message(graph: Graph, tmp_path: Path) -> None:
    """BR-02 (b)."""
    folder = tmp_path / 'bag'
    shutil.copytree(BAG, folder)
    (folder / 'metadata.yaml').unlink()
    (file,) = folder.glob('*.mcap')
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 7 // 10])
    done = graph.command('replay', str(folder), '--once', '--rate', '20')
    words = done.stdout + done.stderr
    assert done.returncode == 0, words
    (whole,) = re.findall(r'is cut short: (\d+) whole messages', words)
    assert f'{whole} messages read = {whole} messages played + 0 dropped' in words
