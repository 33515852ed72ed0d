# SPDX-License-Identifier: Apache-2.0
"""What the server has counted since it began; it never falls, whatever engine or robot goes."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xinfer_ros.core.chunk import ServerTimes
from xinfer_ros.errors import Reason
from xinfer_ros.observe.histogram import PART_BOUNDS_NS, SLACK_BOUNDS_NS, Counts, Histograms
from xinfer_ros.observe.robot_window import Told

# of the time that an answer spends in the server; rest is what no other part has
PARTS = ('decode', 'queue', 'vit', 'prefill', 'action', 'rest', 'server')


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalFigures:
    """
    The totals at a moment.

    :param requests: observations
    :param on_time: answers with rows within their budget
    :param ticks: control ticks that robots have told, ``starved_ticks`` among them
    :param lost: robots whose lease was over
    :param not_registered: refusals at registration, by reason
    :param parts: where the time of answers with rows went, by part: ``PARTS`` and network
    :param slack: time left to the deadline when an answer with rows was published
    """

    requests: int
    on_time: int
    ticks: int
    starved_ticks: int
    lost: int
    not_registered: Counter[Reason]
    parts: Mapping[str, Counts]
    slack: Counts


class Totals:
    """Counts; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served = Histograms([*[PART_BOUNDS_NS] * len(PARTS), SLACK_BOUNDS_NS])
        self._network = Histograms([PART_BOUNDS_NS])
        self._requests = self._on_time = self._ticks = self._starved_ticks = self._lost = 0
        self._not_registered: Counter[Reason] = Counter()

    def arrived(self, told: Told | None) -> None:
        """Count an observation and what it tells; None: of a robot that is not known."""
        with self._lock:
            self._requests += 1
            if told is None:
                return
            self._ticks += told.ticks
            self._starved_ticks += told.starved_ticks
            if told.network_ns is not None:
                self._network.add((told.network_ns,))

    def served(self, times: ServerTimes, slack_ns: int) -> None:
        """
        Count an answer with rows.

        :param slack_ns: time left to its deadline [ns]
        """
        row = (
            times.decode_ns,
            times.queue_ns,
            times.vit_ns,
            times.prefill_ns,
            times.action_ns,
            rest_ns(times),
            times.server_ns,
            slack_ns,
        )
        with self._lock:
            self._on_time += slack_ns >= 0
            self._served.add(row)

    def not_registered(self, reason: Reason) -> None:
        """Count a refusal at registration."""
        with self._lock:
            self._not_registered[reason] += 1

    def lost(self) -> None:
        """Count a robot whose lease is over."""
        with self._lock:
            self._lost += 1

    @property
    def requests(self) -> int:
        """Return the number of observations."""
        return self._requests

    def figures(self) -> TotalFigures:
        """Return the totals of this moment."""
        with self._lock:
            *parts, slack = self._served.counts()
            network = self._network.counts()
            return TotalFigures(
                requests=self._requests,
                on_time=self._on_time,
                ticks=self._ticks,
                starved_ticks=self._starved_ticks,
                lost=self._lost,
                not_registered=self._not_registered.copy(),
                parts=dict(zip((*PARTS, 'network'), parts + network, strict=True)),
                slack=slack,
            )


def rest_ns(times: ServerTimes) -> int:
    """Return the time in the server that is in no other part: records, copying, publishing."""
    known_ns = times.decode_ns + times.queue_ns + times.vit_ns + times.prefill_ns + times.action_ns
    return max(times.server_ns - known_ns, 0)
