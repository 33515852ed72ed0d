# SPDX-License-Identifier: Apache-2.0
"""Small episodes and bags for tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

from xinfer_ros.episodes.bag import Bag
from xinfer_ros.episodes.episode import JPEG, Camera, Episode, Frame, Series
from xinfer_ros.episodes.pictures import as_jpeg
from xinfer_ros.episodes.sources import EpisodeReference, find_episode

SHIPPED = Path(__file__).parents[2] / 'episodes'
NAMES = ['transfer_cube_0', 'transfer_cube_1', 'transfer_cube_2']
JOINTS = ('elbow', 'left_gripper')
FRAMES, STEP_NS = 12, 50_000_000
HEIGHT, WIDTH = 48, 64


def picture(index: int, height: int = HEIGHT, width: int = WIDTH) -> npt.NDArray[np.uint8]:
    """Return a smooth RGB picture that differs from its neighbours."""
    down, right = np.mgrid[0:height, 0:width]
    planes = [down * 3 + index * 9, right * 3, (down + right) * 2 + index * 5]
    return np.stack([plane % 256 // 2 + 40 for plane in planes], axis=-1).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Yields pictures at keyframes."""

    times_ns: npt.NDArray[np.int64]
    jpeg: bool

    def __call__(self, start_ns: int) -> Iterator[Frame]:
        """Yield those from a time on."""
        for index, time_ns in enumerate(self.times_ns):
            if time_ns >= start_ns:
                yield self.frame(index, int(time_ns))

    def frame(self, index: int, time_ns: int) -> Frame:
        """Return one."""
        raw = Frame(
            time_ns=time_ns, encoding='rgb8', height=HEIGHT, width=WIDTH,
            data=picture(index).tobytes(),
        )  # fmt: skip
        if not self.jpeg:
            return raw
        return Frame(time_ns=time_ns, encoding=JPEG, height=HEIGHT, width=WIDTH, data=as_jpeg(raw))


def camera(name: str, *, jpeg: bool, times_ns: npt.NDArray[np.int64] | None = None) -> Camera:
    """Return a camera of smooth pictures."""
    times = np.arange(FRAMES) * STEP_NS if times_ns is None else times_ns
    return Camera(
        name=name, encoding=JPEG if jpeg else 'rgb8', height=HEIGHT, width=WIDTH, times_ns=times,
        stamps_ns=times, read=Pictures(times_ns=times, jpeg=jpeg),
    )  # fmt: skip


def series(*columns: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]) -> Series:
    """Return a series whose columns are functions of the time in seconds."""
    times_ns = np.arange(FRAMES) * STEP_NS
    seconds = times_ns / 1e9
    return Series(times_ns=times_ns, values=np.stack([make(seconds) for make in columns], axis=1))


def sample(*, jpeg: bool = True, name: str = 'sample', **changes: object) -> Episode:
    """Return a short episode with two cameras; its gripper closes at 0.3 s."""
    states = series(np.sin, lambda t: (t < 0.32).astype(float))
    commands = series(lambda t: np.sin(t + 0.05), lambda t: (t < 0.28).astype(float))
    parts: dict[str, object] = {
        'states': states,
        'commands': commands,
        'efforts': series(lambda t: 0 * t, lambda t: 2.0 * (t > 0.28) + 0.1),
        'cameras': (camera('top', jpeg=jpeg), camera('wrist', jpeg=jpeg)),
        'task': 'Fold the towel.',
    }
    return Episode(name=name, joints=JOINTS, **(parts | changes))  # type: ignore[arg-type]


def shipped(name: str = NAMES[0]) -> EpisodeReference:
    """Return a shipped episode."""
    return find_episode(name, SHIPPED)


def copied(
    folder: Path, plugin: StoragePlugin, mode: CompressionMode = CompressionMode.NONE
) -> Path:
    """Write the first shipped bag anew."""
    writer = Writer(folder, version=9, storage_plugin=plugin)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with Reader(SHIPPED / NAMES[0]) as reader, writer:
        connections = {
            known.id: writer.add_connection(
                known.topic,
                known.msgtype,
                msgdef=known.msgdef.data,
                rihs01=known.digest,
                offered_qos_profiles=known.ext.offered_qos_profiles,  # type: ignore[union-attr]
            )
            for known in reader.connections
        }
        for known, stamp_ns, data in reader.messages():
            writer.write(connections[known.id], stamp_ns, data)
    return folder


def contents(path: Path) -> list[tuple[int, str, bytes | None]]:
    """Return every message of a bag."""
    with Bag(path) as bag:
        return [(one.offset_ns, one.topic, one.data) for one in bag.messages()]


def profile(reliability: QosReliability, durability: QosDurability) -> Qos:
    """Return a quality of service."""
    unlimited = QosTime(2147483647, 4294967295)
    return Qos(
        QosHistory.KEEP_LAST, 10, reliability, durability, unlimited, unlimited,
        QosLiveliness.AUTOMATIC, unlimited, False,
    )  # fmt: skip
