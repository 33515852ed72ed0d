# SPDX-License-Identifier: Apache-2.0
"""What every controller watches beside its own rule: preemptions, and hits that never come."""

from collections import deque

from xinfer_ros.brain.controller import Gauges, TurnUsage

NS = 1_000_000_000


class PreemptionGuard:
    """
    Lowers the number of episodes by one for a while when requests preempt one another.

    :param per_minute: preemptions within a minute that are too many
    :param hold_ns: how long the number stays lower [ns]
    """

    def __init__(self, per_minute: int = 3, hold_ns: int = 30 * NS) -> None:
        self._per_minute = per_minute
        self._hold_ns = hold_ns
        self._seen: deque[tuple[int, int]] = deque()  # time, preemptions since the one before
        self._last: int | None = None
        self._limit: int | None = None
        self._until_ns = 0

    def metrics(self, gauges: Gauges | None, admitted: int, now_ns: int) -> None:
        """Take note of the server's metrics and of how many episodes are admitted."""
        count = gauges.preemptions if gauges else None
        if count is not None:
            if self._last is not None and count > self._last:
                self._seen.append((now_ns, count - self._last))
            self._last = count  # smaller than before: the server has started anew
        while self._seen and self._seen[0][0] <= now_ns - 60 * NS:
            self._seen.popleft()
        if sum(number for _, number in self._seen) >= self._per_minute and admitted > 1:
            self._limit, self._until_ns = admitted - 1, now_ns + self._hold_ns
            self._seen.clear()

    def limit(self, now_ns: int) -> int | None:
        """Return how many episodes may be admitted, None while there is no reason for a limit."""
        return self._limit if now_ns < self._until_ns else None


class HitWatch:
    """
    Warns when prompts are hardly ever found in the cache; no first one of an episode can be.

    :param turns: over which the ratio is taken
    :param least: ratio below which it warns
    """

    def __init__(self, turns: int = 20, least: float = 0.5) -> None:
        self._turns: deque[tuple[int, int]] = deque(maxlen=turns)
        self._least = least

    def turn_ended(self, usage: TurnUsage) -> None:
        """Take note of a turn."""
        if usage.cached_tokens is not None and usage.prompt_tokens > 0:
            self._turns.append((usage.cached_tokens, usage.prompt_tokens))

    @property
    def ratio(self) -> float | None:
        """Return the share of prompt tokens found cached, None before the first turn."""
        if not self._turns:
            return None
        return sum(cached for cached, _ in self._turns) / sum(all_ for _, all_ in self._turns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is to be said, nothing before there are enough turns."""
        ratio = self.ratio
        if ratio is None or len(self._turns) < (self._turns.maxlen or 0) or ratio >= self._least:
            return ()
        return (
            f'only {100 * ratio:.0f} % of the prompt tokens of the last {len(self._turns)} turns '
            f'were cached, {100 * self._least:.0f} % are expected: too many episodes, or prompts '
            'that change at their beginning; put fixed text first, pictures and robot state last',
        )
