# SPDX-License-Identifier: Apache-2.0
"""The usage gauge as the signal; shown because it fails: usage falls while a cache thrashes."""

from collections.abc import Sequence

from xinfer_ros.brain.book import Record
from xinfer_ros.brain.controller import Gauges
from xinfer_ros.brain.rule import Indifferent

NS = 1_000_000_000


class AimdUsage(Indifferent):
    """
    One episode more each period while the usage is below a target, by a factor fewer above it.

    :param start: number of episodes at the start
    :param target: usage above which there are fewer, 0 to 1
    :param factor: of the number, when there are fewer
    :param period_ns: between changes [ns]
    """

    name = 'aimd_usage'

    def __init__(
        self,
        start: int = 8,
        target: float = 0.95,
        factor: float = 0.5,
        period_ns: int = 20 * NS,
    ) -> None:
        self.limit: int = start
        self._target = target
        self._factor = factor
        self._period_ns = period_ns
        self._next_ns: int | None = None
        self._usage = 0.0

    @property
    def why(self) -> str:
        """Return the figures."""
        return f'at most {self.limit} episodes at a usage of {100 * self._usage:.0f} %'

    def admits(self, admitted: Sequence[Record], candidate: Record, now_ns: int) -> bool:
        """Return whether there are fewer than the limit."""
        return len(admitted) < self.limit

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Change the limit, if it is time; without a gauge it stays as it is."""
        if gauges is None or gauges.usage is None:
            return
        self._usage = gauges.usage
        if self._next_ns is None:
            self._next_ns = now_ns + self._period_ns
        if now_ns < self._next_ns:
            return
        if self._usage > self._target:
            self.limit = max(int(self.limit * self._factor), 1)
        else:
            self.limit += 1
        self._next_ns = now_ns + self._period_ns
