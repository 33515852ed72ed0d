# SPDX-License-Identifier: Apache-2.0
"""How often times were how long, as exact counters; cheap where times are many."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

MS = 1_000_000
PART_BOUNDS_NS = tuple(
    round(ms * MS)
    for ms in (0.5, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 500, 1000, 2500)
)
SLACK_BOUNDS_NS = tuple(
    ms * MS for ms in (-1000, -500, -200, -100, -50, -20, -10, 0, 10, 20, 50, 100, 200, 500, 1000)
)
BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """
    A histogram as it was.

    :param cumulative: for each bound, and for no bound, how many times were no longer
    """

    bounds_ns: tuple[int, ...]
    cumulative: tuple[int, ...]
    sum_ns: int


class Histograms:
    """
    Counts rows of times, a histogram a column. Not thread-safe: its owner locks.

    Rows are kept until there is a batch of them, or until somebody looks, since sorting each of
    them into its bucket would cost some microseconds.

    :param bounds_ns: upper bounds of each column's buckets, rising, each within its bucket [ns];
        one more bucket holds the rest
    """

    def __init__(self, bounds_ns: Sequence[Sequence[int]]) -> None:
        self._bounds_ns = [tuple(bounds) for bounds in bounds_ns]
        self._counts = [np.zeros(len(bounds) + 1, np.int64) for bounds in bounds_ns]
        self._sums_ns = [0 for _ in bounds_ns]
        self._rows: list[tuple[int, ...]] = []

    def add(self, row: tuple[int, ...]) -> None:
        """Count a time of each column [ns]."""
        self._rows.append(row)
        if len(self._rows) == BATCH:
            self._sort()

    def _sort(self) -> None:
        columns = np.array(self._rows, np.int64).T
        for index, times_ns in enumerate(columns):
            bounds, counts = self._bounds_ns[index], self._counts[index]
            places = np.searchsorted(bounds, times_ns, side='left')
            counts += np.bincount(places, minlength=len(counts))
            self._sums_ns[index] += int(times_ns.sum())
        self._rows = []

    def counts(self) -> list[Counts]:
        """Return each column's histogram."""
        if self._rows:
            self._sort()
        return [
            Counts(
                bounds_ns=bounds,
                cumulative=tuple(accumulate(int(count) for count in counts)),
                sum_ns=sum_ns,
            )
            for bounds, counts, sum_ns in zip(
                self._bounds_ns, self._counts, self._sums_ns, strict=True
            )
        ]
