# SPDX-License-Identifier: Apache-2.0
"""Everybody is admitted, as without a controller."""

from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.rule import Indifferent


class Open(Indifferent):
    """Admits everybody."""

    name = 'open'
    why = 'everybody is admitted'

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """Return True."""
        return True
