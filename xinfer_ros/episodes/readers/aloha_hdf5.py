# SPDX-License-Identifier: Apache-2.0
"""ALOHA-style HDF5 files: one episode each."""

from pathlib import Path

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.reader import Progress, no_progress
from xinfer_ros.errors import ConfigError

_SUFFIXES = ('.hdf5', '.h5')


class AlohaHdf5Reader:
    """Reads files with ``observations/qpos``, ``observations/images/<camera>`` and ``action``."""

    format = 'hdf5'
    needs = 'a .hdf5 file with observations/qpos or action, as ALOHA records it'

    def recognises(self, path: Path) -> bool:
        """Return whether this is such a file."""
        if path.suffix not in _SUFFIXES or not path.is_file():
            return False
        import h5py

        if not h5py.is_hdf5(path):
            return False
        with h5py.File(path, 'r') as file:
            return 'observations/qpos' in file or 'action' in file

    def names(self, path: Path) -> tuple[str, ...]:
        """Return the name of the file: it is one episode."""
        return (path.stem,)

    def read(self, path: Path, name: str, progress: Progress = no_progress) -> Episode:
        """
        Return the episode: everything but the pictures.

        :raises ConfigError: if it can't be read
        """
        import h5py

        from xinfer_ros.episodes.readers.hdf5_episode import read_episode

        try:
            with h5py.File(path, 'r') as file:
                return read_episode(path, name, file)
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise ConfigError(f'HDF5 file {path}: {error}') from error
