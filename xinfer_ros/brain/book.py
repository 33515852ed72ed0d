# SPDX-License-Identifier: Apache-2.0
"""The episodes that a controller knows, and the line of those that wait."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from xinfer_ros.brain.controller import Arrival, Standing
from xinfer_ros.brain.fairness import FairShares
from xinfer_ros.errors import ConfigError

REMEMBERED = 20  # of those that left the line, for the estimate of a wait


@dataclass(slots=True, kw_only=True)
class Record:
    """
    An episode.

    :param number: counts arrivals
    :param tokens: its context: the last prompt and answer, before them the hint [tokens]
    :param in_line_ns: since when it waits, or waited last [ns]
    :param turns: that have ended
    :param admission: which admission its first was; the youngest has the largest
    """

    arrival: Arrival
    number: int
    tokens: int
    in_line_ns: int = 0
    turns: int = 0
    running: bool = False
    standing: Standing = Standing.QUEUED
    admission: int = 0


class Book:
    """Holds the episodes by standing, and knows who is next."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._admitted: dict[str, Record] = {}
        self._waiting: dict[str, Record] = {}
        self._by_robot: dict[str, int] = {}
        self._shares = FairShares()
        self._numbers = 0
        self._admissions = 0
        self._moved_ns = 0  # when the line began, or somebody left it for a place
        self._steps_ns: deque[int] = deque(maxlen=REMEMBERED)
        self._next: Record | None = None  # found when somebody asks for it
        self._places: dict[str, int] | None = None  # likewise

    @property
    def admitted(self) -> list[Record]:
        """Return those that may call, draining ones included, the oldest first."""
        return list(self._admitted.values())

    @property
    def waiting(self) -> list[Record]:
        """Return those that wait, in no order."""
        return list(self._waiting.values())

    def find(self, episode: str) -> Record | None:
        """Return an episode, None if it is unknown."""
        return self._records.get(episode)

    def get(self, episode: str) -> Record:
        """
        Return an episode.

        :raises ConfigError: if it is unknown
        """
        if episode not in self._records:
            raise ConfigError(f'episode {episode!r} is not known here; it must arrive first')
        return self._records[episode]

    def add(self, arrival: Arrival, now_ns: int) -> Record:
        """
        Take in an episode.

        :raises ConfigError: if one of its id is here
        """
        if arrival.episode in self._records:
            raise ConfigError(f'episode {arrival.episode!r} is here already; ids must differ')
        if arrival.robot not in self._by_robot:
            self._shares.joined(arrival.robot, self._by_robot)
        self._by_robot[arrival.robot] = self._by_robot.get(arrival.robot, 0) + 1
        self._numbers += 1
        record = Record(arrival=arrival, number=self._numbers, tokens=arrival.context_hint or 0)
        self._records[arrival.episode] = record
        self._queue(record, now_ns)
        return record

    def remove(self, episode: str) -> Record | None:
        """Forget an episode and return it, None if it is unknown."""
        record = self._records.pop(episode, None)
        if record is None:
            return None
        self._admitted.pop(episode, None)
        self._waiting.pop(episode, None)
        self._changed()
        robot = record.arrival.robot
        self._by_robot[robot] -= 1
        if not self._by_robot[robot]:
            del self._by_robot[robot]
        return record

    def served(self, record: Record) -> None:
        """Count a turn for the episode's robot."""
        robot = record.arrival.robot
        self._shares.serve(robot, 1.0)
        if self._by_robot.get(robot, 0) > 1:
            self._changed()

    def next(self, order: Callable[[Record], int] | None = None) -> Record | None:
        """
        Return who is admitted next, None if nobody waits.

        :param order: gives the class in line in place of parked, then new; least first
        """
        if order is not None:
            return min(
                self._waiting.values(),
                key=lambda record: self._urgency(record, order(record)),
                default=None,
            )
        if self._next is None and self._waiting:
            self._next = min(self._waiting.values(), key=self._urgency)
        return self._next

    def admit(self, record: Record, now_ns: int) -> None:
        """Let an episode call; one that comes back keeps its age."""
        if now_ns > record.in_line_ns:  # who finds a free place tells nothing of a wait
            self._steps_ns.append(now_ns - self._moved_ns)
        self._moved_ns = now_ns
        if not record.admission:
            self._admissions += 1
            record.admission = self._admissions
        record.standing = Standing.ADMITTED
        del self._waiting[record.arrival.episode]
        self._changed()
        self._admitted[record.arrival.episode] = record

    def park(self, record: Record, now_ns: int) -> None:
        """Hold an episode's next turn, at once if none runs."""
        record.standing = Standing.DRAINING
        if not record.running:
            self.drained(record, now_ns)

    def drained(self, record: Record, now_ns: int) -> None:
        """Take note that the last turn of a draining episode has ended."""
        record.standing = Standing.PARKED
        del self._admitted[record.arrival.episode]
        self._queue(record, now_ns)

    def position(self, record: Record) -> int | None:
        """Return an episode's place in the line, 1 for the next, None if it does not wait."""
        if self._places is None:
            line = sorted(self._waiting.values(), key=self._urgency)
            self._places = {other.arrival.episode: at for at, other in enumerate(line, 1)}
        return self._places.get(record.arrival.episode)

    def interval_ns(self, now_ns: int) -> int | None:
        """Return how long the first in line waits for a place, None if unknown [ns]."""
        count, total_ns = len(self._steps_ns), sum(self._steps_ns)
        if not count:
            return None
        waited_ns = now_ns - self._moved_ns if self._waiting else 0
        return max(total_ns // count, (total_ns + waited_ns) // (count + 1))

    def _queue(self, record: Record, now_ns: int) -> None:
        if not self._waiting:
            self._moved_ns = now_ns
        record.in_line_ns = now_ns
        self._waiting[record.arrival.episode] = record
        self._changed()

    def _changed(self) -> None:
        """Forget who is next, since others wait, or wait differently."""
        self._next = self._places = None

    def _urgency(self, record: Record, order: int | None = None) -> tuple[int, int, float, int]:
        arrival = record.arrival
        if order is None:
            order = int(record.standing is Standing.QUEUED)
        return -arrival.priority, order, self._shares.served(arrival.robot), record.number
