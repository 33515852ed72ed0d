# SPDX-License-Identifier: Apache-2.0
"""Where episodes are: a path or the name of a shipped one, of any readable format."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.episodes.bag import Bag
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.reader import Progress, Reader, no_progress
from xinfer_ros.episodes.readers.aloha_hdf5 import AlohaHdf5Reader
from xinfer_ros.episodes.readers.lerobot import LerobotReader
from xinfer_ros.episodes.readers.rosbag2 import Rosbag2Reader
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.errors import ConfigError

MARK = '#'  # between the path of a source and the name of one of its episodes
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReference:
    """
    An episode that has not been read yet.

    :param path: its source
    :param name: its name within the source
    :param reader: of the source's format
    :param single: whether the source has no other
    """

    path: Path
    name: str
    reader: Reader
    single: bool

    def __str__(self) -> str:
        """Return the text by which ``find_episode`` finds it."""
        return str(self.path) if self.single else f'{self.path}{MARK}{self.name}'

    def read(self, progress: Progress = no_progress) -> Episode:
        """
        Return the episode.

        :raises ConfigError: if it can't be read
        """
        return self.reader.read(self.path, self.name, progress)

    def recording(self) -> Recording:
        """
        Return it as what can be played: the messages of a bag as they are, or made on the fly.

        :raises ConfigError: if it can't be read
        """
        if isinstance(self.reader, Rosbag2Reader):
            return Bag(self.path)
        from xinfer_ros.episodes.messages import EpisodeRecording

        return EpisodeRecording(self.read(), jpeg=True)


def readers() -> tuple[Reader, ...]:
    """Return a reader of each format."""
    return (Rosbag2Reader(), LerobotReader(), AlohaHdf5Reader())


def shipped_episodes(shipped: Path) -> Sequence[str]:
    """Return the names of the shipped episodes."""
    return sorted(path.parent.name for path in shipped.glob('*/metadata.yaml'))


def find_episodes(text: str, shipped: Path) -> tuple[EpisodeReference, ...]:
    """
    Return the episodes of a source, at least one.

    :param text: a path, or the name of a shipped episode; ``#NAME`` behind it chooses one episode;
        a folder of sources stands for all of them
    :param shipped: folder of the shipped episodes
    :raises ConfigError: if there is nothing to read; says what was found and what is readable
    """
    source, mark, name = text.partition(MARK)
    for path in (Path(source).expanduser(), shipped / source):
        found = _episodes(path) if source and path.exists() else ()
        if not found and source and path.is_dir():
            found = tuple(one for child in sorted(path.iterdir()) for one in _episodes(child))
        if found:
            return _named(found, name, text) if mark else found
    raise ConfigError(_refusal(source, shipped))


def find_episode(text: str, shipped: Path) -> EpisodeReference:
    """
    Return one episode: that which is named, or the first of its source.

    :raises ConfigError: if there is nothing to read
    """
    return find_episodes(text, shipped)[0]


def all_episodes(texts: Iterable[str], shipped: Path) -> tuple[EpisodeReference, ...]:
    """
    Return the episodes of several sources, in their order.

    :raises ConfigError: if there is nothing to read in one of them
    """
    return tuple(one for text in texts for one in find_episodes(text, shipped))


def _episodes(path: Path) -> tuple[EpisodeReference, ...]:
    for reader in readers():
        if reader.recognises(path):
            names = reader.names(path)
            return tuple(
                EpisodeReference(path=path, name=name, reader=reader, single=len(names) == 1)
                for name in names
            )
    return ()


def _named(
    found: tuple[EpisodeReference, ...], name: str, text: str
) -> tuple[EpisodeReference, ...]:
    chosen = tuple(one for one in found if one.name == name)
    if not chosen:
        names = ', '.join(one.name for one in found[:_SHOWN])
        more = f' and {len(found) - _SHOWN} more' if len(found) > _SHOWN else ''
        raise ConfigError(f'episode {text!r} is not known; behind the # may stand: {names}{more}')
    return chosen


def _refusal(source: str, shipped: Path) -> str:
    path = Path(source).expanduser()
    if source and path.is_dir():
        names = sorted(child.name for child in path.iterdir())
        there = ', '.join(names[:_SHOWN]) + (', …' if len(names) > _SHOWN else '') or 'nothing'
        what = f'the folder holds {there}'
    elif source and path.is_file():
        with path.open('rb') as file:
            what = f'the file begins with {file.read(8)!r}'
    else:
        what = 'there is no such file or folder'
    readable = '; '.join(f'{reader.format}: {reader.needs}' for reader in readers())
    known = ', '.join(shipped_episodes(shipped)) or 'none found'
    return f'episode {source!r}: {what}; readable are {readable}; shipped episodes: {known}'
