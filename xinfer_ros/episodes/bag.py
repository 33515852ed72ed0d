# SPDX-License-Identifier: Apache-2.0
"""rosbag2 recordings: topics and times in memory, messages from disk, oldest first."""

import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.bag_metadata import NAME, read_metadata
from xinfer_ros.episodes.compression import DamageError, unpack_file, unpacked_message
from xinfer_ros.episodes.storage import BagFile
from xinfer_ros.episodes.storages.mcap import McapFile
from xinfer_ros.episodes.storages.sqlite3 import Sqlite3File
from xinfer_ros.episodes.topic import RecordedTopic
from xinfer_ros.errors import ConfigError

STORAGES: dict[str, Callable[[Path], BagFile]] = {'.mcap': McapFile, '.db3': Sqlite3File}
PACKED = '.zstd'


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessage:
    """
    One message of a recording.

    :param offset_ns: time since the first message of the recording [ns]
    :param topic: name of its topic
    :param data: serialised (CDR); None if the recording is damaged there
    """

    offset_ns: int
    topic: str
    data: bytes | None


def bag_files(path: Path) -> list[Path]:
    """
    Return the storage files of a bag in the order of their numbers, none if it is no bag.

    A folder is a bag if its files are numbered parts of one, or if it says so in metadata.yaml.
    """
    if path.is_file():
        return [path] if _storage(path) else []
    if not path.is_dir():
        return []
    found = [file for file in path.iterdir() if file.is_file() and _storage(file)]
    bags = {re.sub(r'(_\d+)?(\.\w+?)(\.zstd)?$', r'\2', file.name) for file in found}
    if len(bags) > 1 and not (path / NAME).is_file():
        return []
    unpacked = {file.name for file in found}
    kept = [f for f in found if f.suffix != PACKED or f.stem not in unpacked]
    return sorted(kept, key=lambda file: (len(file.name), file.name))


class Bag:
    """
    A bag that is open for reading. A context.

    One file is open, and unpacked if need be, at a time; the index of all stays in memory. Not for
    two threads at once.

    :param path: its folder, or one of its files
    :raises ConfigError: if it can't be read or holds no message
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._files = bag_files(path)
        self._unpacked = tempfile.TemporaryDirectory(prefix='xinfer_bag_')
        self._open: tuple[int, BagFile] | None = None
        if not self._files:
            raise ConfigError(f'bag {path}: no .mcap or .db3 file, nor one with {PACKED} behind')
        try:
            self._index()
        except (OSError, ConfigError) as error:
            self.close()
            raise ConfigError(f'bag {path}: {error}') from error

    def __enter__(self) -> 'Bag':
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the open file and remove what was unpacked."""
        if self._open is not None:
            self._open[1].close()
            self._open = None
        self._unpacked.cleanup()

    @property
    def topics(self) -> tuple[RecordedTopic, ...]:
        """Return its topics, each once."""
        return self._topics

    @property
    def start_ns(self) -> int:
        """Return when its first message was received [ns]."""
        return int(self._times_ns[0])

    @property
    def duration_ns(self) -> int:
        """Return the time from the first to the last message [ns]."""
        return int(self._times_ns[-1] - self._times_ns[0])

    @property
    def num_messages(self) -> int:
        """Return how many messages it holds."""
        return len(self._times_ns)

    def offsets_ns(self, topic: str) -> npt.NDArray[np.int64]:
        """Return when each message of a topic was received, after the bag's first one [ns]."""
        place = [known.name for known in self._topics].index(topic)
        rows = np.flatnonzero(self._topic_ids == place)
        offsets_ns: npt.NDArray[np.int64] = self._times_ns[rows] - self._times_ns[0]
        return offsets_ns

    def messages(
        self, start_ns: int = 0, topics: Collection[str] | None = None
    ) -> Iterator[RecordedMessage]:
        """
        Yield messages, oldest first.

        :param start_ns: from when on, after the bag's first message [ns]
        :param topics: names of the wanted topics; None: all
        """
        first = int(np.searchsorted(self._times_ns, self._times_ns[0] + start_ns))
        names = [topic.name for topic in self._topics]
        wanted = [topics is None or name in topics for name in names]
        for row in range(first, len(self._times_ns)):
            topic_id = int(self._topic_ids[row])
            if wanted[topic_id]:
                yield RecordedMessage(
                    offset_ns=int(self._times_ns[row] - self._times_ns[0]),
                    topic=names[topic_id],
                    data=self._data(row),
                )

    def _data(self, row: int) -> bytes | None:
        number, place = int(self._file_ids[row]), int(self._places[row])
        try:
            return unpacked_message(self._file(number).data(place))
        except DamageError:
            return None

    def _index(self) -> None:
        topics: dict[tuple[str, str], int] = {}
        known: list[RecordedTopic] = []
        parts = []
        for number in range(len(self._files)):
            file = self._file(number)
            for topic in file.topics:
                if (topic.name, topic.type_name) not in topics:
                    topics[topic.name, topic.type_name] = len(topics)
                    known.append(topic)
            ids = np.array([topics[t.name, t.type_name] for t in file.topics], np.int64)
            count = len(file.times_ns)
            part = np.empty((count, 4), np.int64)
            part[:, 0], part[:, 2], part[:, 3] = file.times_ns, number, np.arange(count)
            part[:, 1] = ids[file.topic_ids] if count else 0
            parts.append(part)
            self.warnings += file.warnings
        rows = np.concatenate(parts)
        if not len(rows):
            raise ConfigError('it holds no message')
        rows = rows[np.argsort(rows[:, 0], kind='stable')]
        self._times_ns, self._topic_ids, self._file_ids, self._places = rows.T
        metadata = read_metadata(self.path)
        self._topics = tuple(map(metadata.completed, known))
        self.warnings += metadata.warnings(len(rows))

    def _file(self, number: int) -> BagFile:
        if self._open is None or self._open[0] != number:
            if self._open is not None:
                self._open[1].close()
                self._open = None
            self._open = (number, self._opened(self._files[number]))
        return self._open[1]

    def _opened(self, path: Path) -> BagFile:
        if path.suffix != PACKED:
            return STORAGES[path.suffix](path)
        folder = Path(self._unpacked.name)
        for old in folder.iterdir():
            old.unlink()
        unpacked, whole = unpack_file(path, folder)
        if not whole:
            self.warnings.append(f'{path.name} is cut short')
        return STORAGES[unpacked.suffix](unpacked)


def _storage(path: Path) -> bool:
    kind = Path(path.stem).suffix if path.suffix == PACKED else path.suffix
    return kind in STORAGES
