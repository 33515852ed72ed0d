# SPDX-License-Identifier: Apache-2.0
"""What writes a format of recordings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.reader import Progress


class Writer(Protocol):
    """
    Writes episodes in one format.

    Implementations are in ``writers/``.
    """

    @property
    def format(self) -> str:
        """Return the name of the format."""
        ...

    @property
    def suffix(self) -> str:
        """Return how the name of an episode's file ends, empty if it is a folder."""
        ...

    @property
    def holds_many(self) -> bool:
        """Return whether several episodes go into one path."""
        ...

    def write(self, episodes: Sequence[Episode], path: Path, progress: Progress) -> None:
        """
        Write episodes.

        :param episodes: at least one; exactly one unless the format holds many
        :param path: the file or folder to make; must not exist
        :param progress: takes in how many keyframes or messages are written
        :raises ConfigError: if the format can't hold them
        """
        ...
