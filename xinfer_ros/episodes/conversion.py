# SPDX-License-Identifier: Apache-2.0
"""From one format to another, never over what is there."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from xinfer_ros.episodes.reader import Progress
from xinfer_ros.episodes.sources import EpisodeReference
from xinfer_ros.episodes.writer import Writer
from xinfer_ros.episodes.writers.hdf5 import Hdf5Writer
from xinfer_ros.episodes.writers.lerobot import LerobotWriter
from xinfer_ros.episodes.writers.rosbag2 import Rosbag2Writer
from xinfer_ros.errors import ConfigError

FORMATS = ('rosbag2', 'lerobot', 'hdf5')


def make_writer(format: str) -> Writer:
    """
    Return what writes a format.

    :raises ConfigError: if there is none of this name
    """
    writers: tuple[Writer, ...] = (Rosbag2Writer(), LerobotWriter(), Hdf5Writer())
    for writer in writers:
        if writer.format == format:
            return writer
    raise ConfigError(f'format {format!r} is not known; known: {", ".join(FORMATS)}')


def convert(
    references: Sequence[EpisodeReference],
    out: Path,
    writer: Writer,
    progress: Callable[[str], Progress],
) -> list[Path]:
    """
    Write episodes in another format.

    Several episodes become one data set, or a folder with one file or bag each. What is being
    written lies in a hidden folder beside the target and moves there when it is whole.

    :param references: what is converted, at least one
    :param out: the file or folder to make
    :param writer: of the format wanted
    :param progress: takes the name of what is being written; returns what shows its progress
    :returns: what was made
    :raises ConfigError: if ``out`` exists, or the format can't hold the episodes
    """
    single = len(references) == 1 or writer.holds_many
    if out.exists():
        raise ConfigError(f'{out} exists, and nothing is overwritten; name another target')
    if single and writer.suffix and out.suffix != writer.suffix:
        raise ConfigError(
            f'{out}: a {writer.format} file is needed, its name ends in {writer.suffix}'
        )
    if not out.parent.is_dir():
        raise ConfigError(f'{out}: there is no folder {out.parent}')
    hidden = Path(tempfile.mkdtemp(prefix=f'.{out.name}.', dir=out.parent))
    try:
        made = hidden / out.name
        if single:
            episodes = [reference.read() for reference in references]
            writer.write(episodes, made, progress(out.name))
        else:
            made.mkdir()
            for reference in references:
                episode = reference.read()
                target = made / f'{episode.name}{writer.suffix}'
                if target.exists():
                    raise ConfigError(f'two episodes are named {episode.name}; convert them apart')
                writer.write([episode], target, progress(target.name))
        made.rename(out)
    finally:
        shutil.rmtree(hidden)
    return [out] if single else sorted(out.iterdir())
