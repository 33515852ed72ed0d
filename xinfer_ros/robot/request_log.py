# SPDX-License-Identifier: Apache-2.0
"""What became of every request of emulated robots, in arrays that are made beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import ServerTimes
from xinfer_ros.errors import ConfigError

PARTS = tuple(ServerTimes.__slots__)
Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """
    One row a request, in the order of a robot's requests; times of one monotonic clock.

    :param robot: number of the robot in the fleet
    :param due_ns: when the request should have left [ns]
    :param sent_ns: when it left [ns]
    :param received_ns: when its answer came, 0 if none did [ns]
    :param budget_ns: its response budget [ns]
    :param reason: of the answer, ``errors.Reason``
    :param times_ns: time in each part of the server, columns ``PARTS``, ``(n, 6)`` [ns]
    :param wrong: answers that were not this robot's, or to nothing that it had asked ``(k,)``, one
        count a robot
    :param lag_ns: by how much the loop that sends woke up late, whoever was due ``(m,)`` [ns]
    """

    robot: Column
    due_ns: Column
    sent_ns: Column
    received_ns: Column
    budget_ns: Column
    reason: Column
    times_ns: Column
    wrong: Column
    lag_ns: Column

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.robot)

    def save(self, path: Path) -> None:
        """Write it as an .npz file."""
        with path.open('wb') as file:
            np.savez(file, **{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: Path) -> 'RequestLog':
        """
        Read what ``save`` has written.

        :raises ConfigError: if it is not such a file
        """
        try:
            with np.load(path, allow_pickle=False) as found:
                return cls(**{each.name: found[each.name] for each in fields(cls)})
        except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
            raise ConfigError(f'{path} is no log of requests: {error}') from error

    @classmethod
    def joined(cls, logs: Sequence['RequestLog']) -> 'RequestLog':
        """Return several logs, of one process or of many, as one."""
        return cls(
            **{
                each.name: np.concatenate([getattr(log, each.name) for log in logs])
                for each in fields(cls)
            }
        )

    def between(self, from_ns: int, to_ns: int) -> 'RequestLog':
        """Return the requests that were sent in a span of time; wrong ones and lag are of all."""
        rows = (self.sent_ns >= from_ns) & (self.sent_ns < to_ns)
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        return RequestLog(
            **{
                name: values if name in ('wrong', 'lag_ns') else values[rows]
                for name, values in kept.items()
            }
        )
