# SPDX-License-Identifier: Apache-2.0
"""Fairness over robots: an index of it, and the order that keeps it."""

from collections.abc import Iterable, Sequence

MOST_ROBOTS = 4096


def jain_index(shares: Sequence[float]) -> float:
    """
    Return Jain's index, 1 if all get the same, ``1/n`` if one of ``n`` gets everything.

    Source: Jain, Chiu, Hawe 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


class FairShares:
    """
    What each robot has been served, so that the one with least is next.

    A robot that comes, or comes back, starts with no less than the least of those that are here:
    it is not favoured for the time it was away, and can't keep others from ever being next.

    :param most: robots remembered; beyond them those that are away are forgotten
    """

    def __init__(self, most: int = MOST_ROBOTS) -> None:
        self._most = most
        self._served: dict[str, float] = {}

    def joined(self, robot: str, present: Iterable[str]) -> None:
        """
        Take note of a robot's episode.

        :param present: robots that have episodes, without this one
        """
        here = list(present)
        least = min((self._served.get(other, 0.0) for other in here), default=0.0)
        served = max(self._served.get(robot, 0.0), least)
        if len(self._served) >= self._most:
            self._served = {other: self._served.get(other, 0.0) for other in here}
        self._served[robot] = served

    def serve(self, robot: str, amount: float) -> None:
        """Add to what a robot has been served."""
        self._served[robot] = self._served.get(robot, 0.0) + amount

    def served(self, robot: str) -> float:
        """Return what a robot has been served."""
        return self._served.get(robot, 0.0)
