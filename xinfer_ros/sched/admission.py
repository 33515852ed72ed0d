# SPDX-License-Identifier: Apache-2.0
"""Which robots are served when the device cannot serve all of them; pure."""

from collections import deque
from dataclasses import dataclass

from xinfer_ros.errors import Reason, Rejected

BUCKET_NS = 5_000_000_000
BUCKETS = 6  # so that a rate is a mean over 30 s
SETTLED_NS = 20_000_000_000
OVER = 1.03  # of the capacity; more than that for OVER_NS and the robot admitted last is let go
OVER_NS = 5_000_000_000
CHECK_NS = 1_000_000_000
PATIENCE_NS = 1_000_000_000
LONGEST_PATIENCE_NS = 2_000_000_000


@dataclass(slots=True)
class _Bucket:
    """The requests of some seconds, with the sums of their shortest and longest good intervals."""

    count: int = 0
    shortest_ns: int = 0
    longest_ns: int = 0

    def requests(self, span_ns: int) -> float:
        """Return the requests that a good service of the robot would have taken in this time."""
        if not self.count or span_ns <= 0:
            return 0.0
        least = span_ns * self.count / self.longest_ns
        most = span_ns * self.count / self.shortest_ns
        return min(max(self.count, least), most)


class Demand:
    """
    What one robot asks for, in constant memory.

    Until it has been seen for 20 s that is ``1 / TE``, the most that it may ask for; from then on
    the mean rate of its requests over the last 30 s, which pacing makes smaller. A robot in use
    counts with no less than one request a ``max(TE, b)``: what it needs to be on time. Else a
    device that is too slow would hide its overload, since robots that wait ask for less.

    :param now_ns: its first request [ns]
    """

    def __init__(self, now_ns: int) -> None:
        self._since_ns = now_ns
        self._number = now_ns // BUCKET_NS  # of the newest bucket
        self._buckets = deque([_Bucket()], maxlen=BUCKETS + 1)
        self._period_ns = 1

    def count(self, period_ns: int, budget_ns: int, now_ns: int) -> None:
        """Take in a request."""
        self._turn(now_ns)
        self._period_ns = period_ns
        newest = self._buckets[-1]
        newest.count += 1
        newest.shortest_ns += period_ns
        newest.longest_ns += max(period_ns, budget_ns)

    def per_s(self, now_ns: int) -> float:
        """Return the requests per second [1/s]."""
        if now_ns - self._since_ns < SETTLED_NS:
            return 1e9 / self._period_ns
        self._turn(now_ns)
        requests, until_ns = 0.0, now_ns
        for index, bucket in enumerate(reversed(self._buckets)):
            from_ns = max((self._number - index) * BUCKET_NS, self._since_ns)
            requests += bucket.requests(until_ns - from_ns)
            until_ns = from_ns
        return requests * 1e9 / (now_ns - until_ns)

    def _turn(self, now_ns: int) -> None:
        number = max(now_ns // BUCKET_NS, self._number)
        for _ in range(min(number - self._number, BUCKETS + 1)):
            self._buckets.append(_Bucket())
        self._number = number


class CapacityAdmission:
    """
    Serves as many robots as the device can serve well, in the order in which they first ask.

    A robot that was admitted stays so until it is forgotten. One that would exceed the capacity
    is refused, request by request, and enters when there is room: an overload is then a clear
    answer to a few robots, not a late one to all. If those admitted exceed the capacity for good,
    as when the device has become slower, the one admitted last is let go. A single robot is
    always served. Not thread-safe: its owner locks.

    :param capacity_per_s: responses per second at the speed of the calibration [1/s]; None: every
        robot is served
    """

    def __init__(self, capacity_per_s: float | None) -> None:
        self._capacity_per_s = capacity_per_s
        self._admitted: dict[int, Demand] = {}  # in the order of admission
        self._waiting: dict[int, tuple[int, int]] = {}  # period and last request, by first request
        self._over_since_ns: int | None = None
        self._checked_ns = 0

    @property
    def admitted(self) -> tuple[int, ...]:
        """Return the robots that are served, in the order of their admission."""
        return tuple(self._admitted)

    def ask(
        self, robot: int, period_ns: int, budget_ns: int, now_ns: int, slowdown: float
    ) -> None:
        """
        Take in a request of a robot.

        :param robot: its number
        :param period_ns: ``TE``, least time between two of its requests [ns]
        :param budget_ns: response budget ``b`` [ns]
        :param now_ns: the arrival of the request, hardly ever falling [ns]
        :param slowdown: how much slower the device is than its calibration
        :raises Rejected: REJECTED_CAPACITY if the robot is not served
        """
        if self._capacity_per_s is None:
            return
        capacity = self._capacity_per_s / slowdown
        if now_ns - self._checked_ns >= CHECK_NS:
            self._checked_ns = now_ns
            self._let_go_if_over(capacity, now_ns)
        if robot not in self._admitted and not self._enters(robot, period_ns, now_ns, capacity):
            raise Rejected(Reason.REJECTED_CAPACITY, self._text(period_ns, now_ns, capacity))
        self._admitted[robot].count(period_ns, budget_ns, now_ns)

    def forget(self, robot: int) -> None:
        """Take in that a robot is gone."""
        self._admitted.pop(robot, None)
        self._waiting.pop(robot, None)

    def demand_per_s(self, now_ns: int) -> float:
        """Return what the robots that are served ask for, all together [1/s]."""
        return sum(demand.per_s(now_ns) for demand in self._admitted.values())

    def _enters(self, robot: int, period_ns: int, now_ns: int, capacity: float) -> bool:
        """Admit the robot if there is room and nobody whom it suits has waited for longer."""
        self._waiting[robot] = period_ns, now_ns
        room = capacity - self.demand_per_s(now_ns)
        first = robot if not self._admitted else self._first_that_fits(room, now_ns)
        if first == robot:
            del self._waiting[robot]
            self._admitted[robot] = Demand(now_ns)
        return first == robot

    def _first_that_fits(self, room: float, now_ns: int) -> int | None:
        """Return the robot that has waited longest of those that fit and still ask."""
        for robot, (period_ns, asked_ns) in list(self._waiting.items()):
            if now_ns - asked_ns > PATIENCE_NS + min(2 * period_ns, LONGEST_PATIENCE_NS):
                del self._waiting[robot]
            elif 1e9 / period_ns <= room:
                return robot
        return None

    def _let_go_if_over(self, capacity: float, now_ns: int) -> None:
        is_over = self.demand_per_s(now_ns) > OVER * capacity and len(self._admitted) > 1
        if not is_over:
            self._over_since_ns = None
        elif self._over_since_ns is None:
            self._over_since_ns = now_ns
        elif now_ns - self._over_since_ns >= OVER_NS:
            self._admitted.popitem()
            self._over_since_ns = None

    def _text(self, period_ns: int, now_ns: int, capacity: float) -> str:
        fit = max(int(capacity * period_ns / 1e9), 1)
        return (
            f'the device gives {capacity:.1f} responses/s; it serves {len(self._admitted)} robots '
            f'that ask for {self.demand_per_s(now_ns):.1f}, and about {fit} fit that ask every '
            f'{period_ns / 1e6:g} ms. Ask less often (minimum_period_s), take robots or load off '
            'this server, or add another one'
        )
