# SPDX-License-Identifier: Apache-2.0
"""sqlite3 files of a bag; of a file that was cut short, every message whose row is there."""

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

import numpy as np

from xinfer_ros.episodes.compression import DamageError
from xinfer_ros.episodes.storages.sqlite3_pages import Row, is_whole, rows_of_pages
from xinfer_ros.episodes.topic import RecordedTopic
from xinfer_ros.errors import ConfigError

MAGIC = b'SQLite format 3\x00'


class Sqlite3File:
    """
    A sqlite3 file.

    :param path: of the file
    :raises ConfigError: if it is none
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.warnings: list[str] = []
        with path.open('rb') as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ConfigError(f'{path}: it is no sqlite3 file')
        # immutable: nothing is created beside a bag that may lie on a read-only disk
        log_is_there = path.with_name(f'{path.name}-wal').is_file()
        mode = 'mode=ro' if log_is_there else 'mode=ro&immutable=1'
        uri = f'file:{quote(str(path))}?{mode}'
        # opened in one thread and read in another, never at once
        self._base = sqlite3.connect(uri, uri=True, check_same_thread=False)
        # lets a file be opened that is shorter than it says
        self._base.execute('PRAGMA writable_schema=ON')
        self._saved: dict[int, Row] = {}
        try:
            topic_rows = self._topics()
            rows = self._rows()
        except sqlite3.DatabaseError as error:
            self.close()
            raise ConfigError(f'{path}: {error}; it is no bag of rosbag2, or broken') from error
        self.topics = [topic for _, topic in topic_rows]
        places = {row[0]: place for place, row in enumerate(topic_rows)}
        kept = [row for row in rows if row[1] in places and _is_time(row[2])]
        self._ids = [row[0] for row in kept]
        self.topic_ids = np.array([places[row[1]] for row in kept], np.int32)
        self.times_ns = np.array([row[2] for row in kept], np.int64)

    def data(self, index: int) -> bytes:
        """
        Return a message as it was stored.

        :raises DamageError: if its bytes are not what was written
        """
        number = self._ids[index]
        if number in self._saved:
            return self._saved[number].data(self._path)
        try:
            query = 'SELECT data FROM messages WHERE id = ?'
            found = self._base.execute(query, (number,)).fetchone()
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as error:
            raise DamageError(str(error)) from error
        if found is None or not isinstance(found[0], bytes):
            raise DamageError(f'no message {number}')
        return found[0]

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _topics(self) -> list[tuple[int, RecordedTopic]]:
        columns = self._columns('topics')
        definitions: dict[str, str] = {}
        if self._columns('message_definitions'):
            definitions = dict(
                self._base.execute(
                    'SELECT topic_type, encoded_message_definition FROM message_definitions '
                    "WHERE encoding = 'ros2msg'"
                )
            )
        type_hash = 'type_description_hash' if 'type_description_hash' in columns else "''"
        profiles = 'offered_qos_profiles' if 'offered_qos_profiles' in columns else "''"
        query = f'SELECT id, name, type, {type_hash}, {profiles} FROM topics ORDER BY id'
        return [
            (
                number,
                RecordedTopic(
                    name=name,
                    type_name=kind,
                    type_hash=digest or None,
                    definition=definitions.get(kind, ''),
                    qos=qos,
                ),
            )
            for number, name, kind, digest, qos in self._base.execute(query)
        ]

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._base.execute(f'PRAGMA table_info({table})')]

    def _rows(self) -> list[tuple[int, int, int]]:
        """Return id, topic and time of each message, in the order in which they were written."""
        if is_whole(self._path):
            with contextlib.suppress(sqlite3.DatabaseError):
                return self._base.execute(
                    'SELECT id, topic_id, timestamp FROM messages ORDER BY id'
                ).fetchall()
        self._saved = {row.number: row for row in rows_of_pages(self._path)}
        rows = [(row.number, row.topic_id, row.time_ns) for row in self._saved.values()]
        self.warnings.append(f'{self._path.name} is cut short: {len(rows)} whole messages')
        return sorted(rows)


def _is_time(value: object) -> bool:
    """Return whether a value, which may be anything in a damaged file, is a time."""
    return isinstance(value, int) and value >= 0
