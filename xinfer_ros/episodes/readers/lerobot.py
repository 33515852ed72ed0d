# SPDX-License-Identifier: Apache-2.0
"""LeRobot data sets, versions 2 and 3, from a local folder."""

from pathlib import Path

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.reader import Progress, no_progress
from xinfer_ros.episodes.readers.lerobot_layout import INFO, Layout
from xinfer_ros.errors import ConfigError


class LerobotReader:
    """Reads LeRobot data sets: parquet for joints, MP4 or parquet for pictures."""

    format = 'lerobot'
    needs = f'a folder with {INFO} (LeRobot v2.x or v3.x)'

    def recognises(self, path: Path) -> bool:
        """Return whether this is a data set."""
        return (path / INFO).is_file()

    def names(self, path: Path) -> tuple[str, ...]:
        """
        Return the numbers of the episodes.

        :raises ConfigError: if the folder tells of none
        """
        return tuple(str(files.index) for files in Layout(path).episodes())

    def read(self, path: Path, name: str, progress: Progress = no_progress) -> Episode:
        """
        Return an episode: everything but the pictures.

        :raises ConfigError: if it can't be read
        """
        from xinfer_ros.episodes.readers.lerobot_episode import read_episode

        layout = Layout(path)
        found = {str(files.index): files for files in layout.episodes()}
        if name not in found:
            raise ConfigError(f'data set {path}: episode {name} is none of 0 to {len(found) - 1}')
        try:
            return read_episode(layout, found[name])
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f'data set {path}, episode {name}: {error}') from error
