# SPDX-License-Identifier: Apache-2.0
"""What one process of a load generator does, as a file that its parent writes."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from xinfer_ros.errors import ConfigError

Images = Literal['raw', 'jpeg']
IMAGES: tuple[Images, ...] = ('jpeg', 'raw')


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """
    The robots of one process, and what they send; times are relative to the common start.

    :param robots: their numbers in the fleet
    :param first_sends_ns: when each of them sends first [ns]
    :param budgets_ns: response budgets that each of them runs through, over and over [ns]
    :param period_ns: ``TE`` [ns]
    :param duration_ns: from when on nothing more is sent [ns]
    :param keeps_pace: whether the server's wish for a later request is honoured
    :param instance: tells this run's robots from others with the same ids; one for all its fleets
    :param episode: number of the fleet in the run: each begins a new episode
    :param images: how pictures are sent; recordings of the other kind are converted before
    :param episodes: what is recorded; robot ``i`` sends of ``episodes[i % len(episodes)]``
    :param start_timeout_s: time for the server to register every robot [s]
    :param log: file that gets the log of the requests
    """

    robots: tuple[int, ...]
    first_sends_ns: tuple[int, ...]
    budgets_ns: tuple[tuple[int, ...], ...]
    period_ns: int
    duration_ns: int
    keeps_pace: bool
    instance: int
    episode: int
    images: Images
    episodes: tuple[str, ...]
    start_timeout_s: float
    log: str

    def __post_init__(self) -> None:
        """Refuse lists that do not fit together."""
        if not len(self.robots) == len(self.first_sends_ns) == len(self.budgets_ns):
            raise ConfigError(
                f'{len(self.robots)} robots with {len(self.first_sends_ns)} first sends and '
                f'{len(self.budgets_ns)} lists of budgets; one each is needed'
            )
        if not self.robots or not all(self.budgets_ns) or not self.episodes:
            raise ConfigError('a load needs a robot, a budget for each, and an episode')

    def write(self, path: Path) -> None:
        """
        Write it as JSON.

        :raises ConfigError: if the file can't be written
        """
        try:
            path.write_text(json.dumps(asdict(self)))
        except OSError as error:
            raise ConfigError(f'{path} cannot be written: {error.strerror}') from error

    @classmethod
    def read(cls, path: Path) -> 'LoadPlan':
        """
        Read what ``write`` has written.

        :raises ConfigError: if it is not such a file
        """
        try:
            found = json.loads(path.read_text())
            found['budgets_ns'] = tuple(tuple(row) for row in found['budgets_ns'])
            for name in ('robots', 'first_sends_ns', 'episodes'):
                found[name] = tuple(found[name])
            return cls(**found)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f'{path} is no plan of a load: {error}') from error


def shares(robots: int, per_process: int) -> Sequence[range]:
    """Return the numbers of the robots of each process, as even as can be."""
    processes = -(-robots // per_process)
    edges = [robots * place // processes for place in range(processes + 1)]
    return [range(low, high) for low, high in itertools.pairwise(edges)]
