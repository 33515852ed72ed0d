# SPDX-License-Identifier: Apache-2.0
"""Fairness over robots: an index of it, and the order that keeps it."""

from collections.abc import Iterable, Sequence


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
    """

    def __init__(self) -> None:
        self._served: dict[str, float] = {}

    def joined(self, robot: str, present: Iterable[str]) -> None:
        """
        Take note of a robot's episode.

        :param present: robots that have episodes, without this one
        """
        least = min((self._served.get(other, 0.0) for other in present), default=0.0)
        self._served[robot] = max(self._served.get(robot, 0.0), least)

    def serve(self, robot: str, amount: float) -> None:
        """Add to what a robot has been served."""
        self._served[robot] = self._served.get(robot, 0.0) + amount

    def served(self, robot: str) -> float:
        """Return what a robot has been served."""
        return self._served.get(robot, 0.0)
