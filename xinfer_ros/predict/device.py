# SPDX-License-Identifier: Apache-2.0
"""A device that units share: each progresses at the rate of the table beside the others."""

from dataclasses import dataclass

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.rate_table import Rates, RateTable


@dataclass(slots=True, kw_only=True)
class Executing:
    """
    A unit on the device.

    :param begin_ns: end of its launch overhead
    :param left_ms: its work to be done, in time alone
    """

    number: int
    stage: Stage
    begin_ns: int
    left_ms: float


class SimulatedDevice:
    """
    Runs units side by side; between two changes every rate is constant.

    :param true_rates: shape ``(3, cV + 1, cP + 1, cA + 1)``
    """

    def __init__(self, true_rates: Rates) -> None:
        self._table = RateTable(true_rates)
        self._units: list[Executing] = []  # in the order of their start
        self._counts = [0 for _ in Stage]
        self._progressed_ns = 0
        self._next: tuple[int, Executing] | None = None

    @property
    def next_end_ns(self) -> int | None:
        """Return when the next unit ends if no other starts, None if none runs."""
        return None if self._next is None else self._next[0]

    def start(self, now_ns: int, units: list[Executing]) -> None:
        """Start units; those that run already feel them from now on."""
        self._progress(now_ns)
        for unit in units:
            self._units.append(unit)
            self._counts[unit.stage] += 1
        self._plan(now_ns)

    def end_next(self) -> int:
        """Let the unit end that ends next; return its number."""
        assert self._next is not None, 'a unit must run'
        now_ns, unit = self._next
        self._progress(now_ns)
        self._units.remove(unit)
        self._counts[unit.stage] -= 1
        self._plan(now_ns)
        return unit.number

    def _rates(self) -> list[float]:
        return [self._table.rate_without(stage, self._counts) for stage in Stage]

    def _progress(self, now_ns: int) -> None:
        rates = self._rates()
        for unit in self._units:
            from_ns = max(self._progressed_ns, unit.begin_ns)
            if now_ns > from_ns:
                unit.left_ms -= (now_ns - from_ns) * 1e-6 * rates[unit.stage]
        self._progressed_ns = now_ns

    def _plan(self, now_ns: int) -> None:
        rates = self._rates()
        self._next = None
        for unit in self._units:
            left_ms = max(unit.left_ms, 0.0) / rates[unit.stage]
            at_ns = max(now_ns, unit.begin_ns) + int(left_ms * 1e6)
            if self._next is None or at_ns < self._next[0]:
                self._next = at_ns, unit
