# SPDX-License-Identifier: Apache-2.0
"""A fixed number of episodes, chosen by hand."""

from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.rule import Indifferent


class Static(Indifferent):
    """
    Admits a fixed number.

    :param number: of episodes
    """

    name = 'static'

    def __init__(self, number: int) -> None:
        self.limit = number
        self.why = f'at most {number} episodes'

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """Return whether there are fewer."""
        return len(admitted) < (self.limit or 0)
