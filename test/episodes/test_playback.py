# SPDX-License-Identifier: Apache-2.0
"""Playing a recording in virtual time: what is sent when, and that nothing is lost unnoticed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rosbags.interfaces import QosDurability, QosReliability
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from xinfer_ros.episodes.bag import Bag
from xinfer_ros.episodes.messages import EpisodeRecording
from xinfer_ros.episodes.playback import Playback, PlaybackSettings
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.errors import ConfigError

from .samples import FRAMES, NAMES, SHIPPED, STEP_NS, copied, profile, sample, shipped

TYPES = get_typestore(Stores.ROS2_KILTED)


class Heard:
    """Takes what is played, with the time of the call."""

    def __init__(self, refused: str = '') -> None:
        self.messages: list[tuple[int, str]] = []
        self.rounds = 0
        self.now_ns = 0
        self._refused = refused

    def send(self, topic: str, data: bytes) -> str | None:
        """Take a message, or refuse it."""
        if topic == self._refused:
            return 'unknown'
        self.messages.append((self.now_ns, topic))
        return None

    def start_over(self) -> None:
        """Count a round."""
        self.rounds += 1


def _play(playback: Playback, heard: Heard, until_ns: int) -> None:
    """Play in virtual time."""
    due_ns: int | None = heard.now_ns
    while due_ns is not None and due_ns <= until_ns:
        heard.now_ns = due_ns
        due_ns = playback.play(due_ns, wait=True)


@pytest.fixture
def mixed_bag(tmp_path: Path) -> Iterator[Recording]:
    """Return a bag of 20 s: best-effort pictures, and a latched task at the start."""
    kind = 'sensor_msgs/msg/CompressedImage'
    latched = profile(QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL)
    loose = profile(QosReliability.BEST_EFFORT, QosDurability.VOLATILE)
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        task = writer.add_connection(
            '/task', 'std_msgs/msg/String', typestore=TYPES, offered_qos_profiles=[latched]
        )
        pictures = writer.add_connection(
            '/top', kind, typestore=TYPES, offered_qos_profiles=[loose]
        )
        writer.write(task, 0, b'\0\1\0\0')
        for index in range(201):
            writer.write(pictures, index * 10**8, b'\0\1\0\0')
    with Bag(tmp_path / 'bag') as bag:
        yield bag


def test_each_message_is_sent_at_its_time() -> None:
    heard, recording = Heard(), EpisodeRecording(sample(), jpeg=True)
    playback = Playback(recording, PlaybackSettings(loop=False), heard.send)
    _play(playback, heard, 10**10)
    playback.close()
    assert heard.messages == [(one.offset_ns, one.topic) for one in recording.messages()]
    assert playback.summary() == '49 messages read = 49 messages played + 0 dropped'


def test_speed_divides_the_times() -> None:
    heard, recording = Heard(), EpisodeRecording(sample(), jpeg=True)
    playback = Playback(recording, PlaybackSettings(loop=False, rate=2.0), heard.send)
    _play(playback, heard, 10**10)
    playback.close()
    assert heard.messages[-1][0] == (FRAMES - 1) * STEP_NS // 2


def test_latched_task_is_known_when_starting_later(mixed_bag: Recording) -> None:
    """BR-01: from 10 s on, the task comes first, and every picture after 10 s is sent."""
    heard = Heard()
    settings = PlaybackSettings(start_ns=10 * 10**9, loop=False)
    playback = Playback(mixed_bag, settings, heard.send)
    playback.send_latched()
    assert [topic for _, topic in heard.messages] == ['/task']
    _play(playback, heard, 10**11)
    assert Counter(topic for _, topic in heard.messages) == {'/task': 1, '/top': 101}
    assert heard.messages[-1][0] == 10 * 10**9
    playback.close()


def test_start_is_taken_modulo_the_length(mixed_bag: Recording) -> None:
    heard = Heard()
    settings = PlaybackSettings(start_ns=38 * 10**9, loop=False)
    playback = Playback(mixed_bag, settings, heard.send)
    _play(playback, heard, 10**11)
    playback.close()
    assert len(heard.messages) == 21


def test_loop_starts_over_and_sends_the_task_again(mixed_bag: Recording) -> None:
    heard = Heard()
    playback = Playback(mixed_bag, PlaybackSettings(), heard.send, heard.start_over)
    _play(playback, heard, 50 * 10**9)
    playback.close()
    counts = Counter(topic for _, topic in heard.messages)
    assert heard.rounds == 2
    assert counts['/task'] == 3
    assert 480 < counts['/top'] <= 501


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_what_is_read_is_sent_or_dropped_for_a_reason(
    tmp_path: Path, plugin: StoragePlugin
) -> None:
    """BR-04: 1501 = 1201 + 300, though a bag is opened in one thread and read in another."""
    heard = Heard(refused='/joint_command')
    with Bag(copied(tmp_path / 'bag', plugin)) as bag:
        playback = Playback(bag, PlaybackSettings(loop=False), heard.send)
        _play(playback, heard, 10**11)
        playback.close()
    assert playback.read == playback.sent + playback.dropped.total() == 1501
    assert playback.dropped == {'unknown': 300}
    assert 'played + 300 dropped (300 unknown)' in playback.summary()


def test_damaged_messages_are_counted(tmp_path: Path) -> None:
    """BR-04: damage in the middle of a bag ends nothing."""
    heard, file = Heard(), SHIPPED / NAMES[0] / f'{NAMES[0]}.mcap'
    data = bytearray(file.read_bytes())
    for place in range(len(data) // 3, len(data) // 3 + 2000):
        data[place] ^= 0x55
    (tmp_path / 'bag.mcap').write_bytes(data)
    with Bag(tmp_path / 'bag.mcap') as bag:
        playback = Playback(bag, PlaybackSettings(loop=False), heard.send)
        _play(playback, heard, 10**11)
        playback.close()
    assert playback.dropped['damaged'] > 0
    assert playback.read == playback.sent + playback.dropped['damaged'] == 1501


def test_shipped_episode_and_its_messages_made_anew_are_the_same() -> None:
    """Parity of the two ways to play: a bag as it is, and an episode as messages."""
    recording = EpisodeRecording(shipped().read(), jpeg=True)
    with Bag(SHIPPED / NAMES[0]) as bag:
        for topic in ('/task', '/top/image_raw/compressed', '/joint_states'):
            plain = list(bag.messages(topics=[topic]))
            made = list(recording.messages(topics=[topic]))
            assert [one.offset_ns for one in plain] == [one.offset_ns for one in made]
        assert recording.num_messages == bag.num_messages


def test_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match='more than 0'):
        Playback(EpisodeRecording(sample(), jpeg=True), PlaybackSettings(rate=0.0), Heard().send)
