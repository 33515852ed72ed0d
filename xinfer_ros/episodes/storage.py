# SPDX-License-Identifier: Apache-2.0
"""One file of a bag: an index of its messages in memory, the messages themselves on disk."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.topic import RecordedTopic


class BagFile(Protocol):
    """
    A file of a bag that is open for reading.

    Implementations are in ``storages/``.
    """

    @property
    def topics(self) -> Sequence[RecordedTopic]:
        """Return its topics."""
        ...

    @property
    def times_ns(self) -> npt.NDArray[np.int64]:
        """Return when each message was received, in the order of the file [ns]."""
        ...

    @property
    def topic_ids(self) -> npt.NDArray[np.int32]:
        """Return the place of each message's topic in ``topics``."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Return what is wrong with the file."""
        ...

    def data(self, index: int) -> bytes:
        """
        Return a message as it was stored.

        :raises DamageError: if its bytes are not what was written
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...
