# SPDX-License-Identifier: Apache-2.0
"""Notices within seconds that contexts are lost, by the server's counters."""

from collections import deque

from xinfer_ros.brain.controller import Gauges

NS = 1_000_000_000


class LossWatch:
    """
    Holds the prompt tokens that the server did not find against those that nobody expected found.

    A call tells what it has cost only at its end, and while a server computes lost contexts no
    call ends; its counters move when a context is looked for.

    :param window_ns: over which tokens are added up [ns]
    :param share: of the tokens looked for, lost beyond what was expected, that is alarming
    :param least: tokens looked for that say anything, in contexts
    :param pause_ns: after an alarm, in which what was lost is computed [ns]
    """

    def __init__(
        self,
        window_ns: int = 6 * NS,
        share: float = 0.35,
        least: float = 3.0,
        pause_ns: int = 60 * NS,
    ) -> None:
        self._window_ns = window_ns
        self._share = share
        self._least = least
        self._pause_ns = pause_ns
        self._deaf_until_ns = 0
        self._seen: deque[tuple[int, int, int]] = deque()  # time, queries, hits
        self._expected: deque[tuple[int, float]] = deque()  # time, tokens

    def expect(self, tokens: float, now_ns: int) -> None:
        """Take note of a call that will compute so much of its prompt [tokens]."""
        self._expected.append((now_ns, tokens))

    def alarms(
        self, gauges: Gauges | None, context_tokens: float, growth_tokens: float, now_ns: int
    ) -> bool:
        """
        Take note of the server's counters.

        :param context_tokens: a typical context [tokens]
        :param growth_tokens: what a call has to compute of it at any rate [tokens]
        :returns: whether far more is lost than was expected
        """
        if gauges is None or gauges.prefix_queries is None or gauges.prefix_hits is None:
            self._seen.clear()
            return False
        if self._seen and gauges.prefix_queries < self._seen[-1][1]:
            self._seen.clear()  # the server has started anew
        self._seen.append((now_ns, gauges.prefix_queries, gauges.prefix_hits))
        since = now_ns - self._window_ns
        while self._seen[0][0] < since:
            self._seen.popleft()
        while self._expected and self._expected[0][0] < since - self._window_ns:
            self._expected.popleft()
        queries = self._seen[-1][1] - self._seen[0][1]
        computed = queries - (self._seen[-1][2] - self._seen[0][2])
        lost = computed - queries * min(growth_tokens / context_tokens, 1.0)
        lost -= sum(tokens for _, tokens in self._expected)
        if now_ns < self._deaf_until_ns or queries < self._least * context_tokens:
            return False
        if lost < self._share * queries:
            return False
        self._deaf_until_ns = now_ns + self._pause_ns
        return True
