# SPDX-License-Identifier: Apache-2.0
"""What reads a format of recordings."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from xinfer_ros.episodes.episode import Episode

#: Takes in how much is done of how much
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


class Reader(Protocol):
    """
    Reads the episodes of one format.

    Implementations are in ``readers/``. What a source is, its content says, not its name.
    """

    @property
    def format(self) -> str:
        """Return the name of the format."""
        ...

    @property
    def needs(self) -> str:
        """Return what a folder or file of the format consists of."""
        ...

    def recognises(self, path: Path) -> bool:
        """Return whether this is a source of the format."""
        ...

    def names(self, path: Path) -> tuple[str, ...]:
        """
        Return the names of the episodes of a source.

        :raises ConfigError: if they can't be read
        """
        ...

    def read(self, path: Path, name: str, progress: Progress = no_progress) -> Episode:
        """
        Return an episode: everything but the frames of its cameras.

        :raises ConfigError: if it can't be read
        """
        ...
