# SPDX-License-Identifier: Apache-2.0
"""rosbag2 recordings as episodes."""

from pathlib import Path

from xinfer_ros.episodes.bag import Bag, bag_files
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.reader import Progress, no_progress


class Rosbag2Reader:
    """Reads rosbag2 folders and single files of them, MCAP or sqlite3, compressed or cut short."""

    format = 'rosbag2'
    needs = 'a folder with .mcap or .db3 files (also .zstd), or one of these files'

    def recognises(self, path: Path) -> bool:
        """Return whether this is a bag."""
        return bool(bag_files(path))

    def names(self, path: Path) -> tuple[str, ...]:
        """Return the name of the bag: it is one episode."""
        return (path.name if path.is_dir() else path.name.split('.')[0],)

    def read(self, path: Path, name: str, progress: Progress = no_progress) -> Episode:
        """
        Return the episode: everything but the pictures.

        :raises ConfigError: if the bag can't be read
        """
        from xinfer_ros.episodes.readers.bag_pass import BagPass

        with Bag(path) as bag:
            return BagPass(path, name, bag).run(progress)
