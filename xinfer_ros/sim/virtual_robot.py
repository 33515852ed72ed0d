# SPDX-License-Identifier: Apache-2.0
"""A robot of a simulated fleet: it asks by the rule of the real one."""

from dataclasses import dataclass

from xinfer_ros.robot.next_send import InFlight, NextSend


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """
    One request of one robot as the scenario has drawn it; ``sim.scenario.DRAWS``.

    :param up_ns: network delay to the server
    :param front_end_ns: CPU preparation
    :param noise: true work over ``W_s``, of each stage
    :param down_ns: network delay back
    :param jitter_ns: added to the period after it
    """

    budget_ns: int
    up_ns: int
    front_end_ns: int
    noise: tuple[float, float, float]
    down_ns: int
    jitter_ns: int

    @classmethod
    def of(cls, budget_ns: int, values: list[float]) -> 'Draw':
        """Return a draw from its row."""
        up, front_end, vit, prefill, action, down, jitter = values
        return cls(
            budget_ns=budget_ns,
            up_ns=int(up),
            front_end_ns=int(front_end),
            noise=(vit, prefill, action),
            down_ns=int(down),
            jitter_ns=int(jitter),
        )


class VirtualRobot:
    """
    Sends its requests one by one, each after the answer to the last.

    :param draws: its requests
    :param quota: requests after which it leaves
    :param period_ns: ``TE``
    """

    def __init__(self, draws: list[Draw], quota: int, period_ns: int) -> None:
        self._draws = draws
        self._quota = min(quota, len(draws))
        self._rule = NextSend(period_ns, backoff_ns=0)
        self.index = 0  # of the request in flight, else of the next one
        self.sent_ns = 0

    @property
    def draw(self) -> Draw:
        """Return what was drawn for the request in flight."""
        return self._draws[self.index % len(self._draws)]

    def send(self, now_ns: int) -> None:
        """Send the next request."""
        self.sent_ns = now_ns
        # the period is counted from a timer that is off by the jitter
        timer_ns = now_ns + self.draw.jitter_ns
        self._rule.sent(
            InFlight(
                request_id=self.index,
                sent_ns=timer_ns,
                budget_ns=self.draw.budget_ns,
                executed_steps=0,
            )
        )

    def stand(self, now_ns: int) -> None:
        """Ask again at once, by a request that the server has already."""
        self.index += 1
        self.sent_ns = now_ns

    def receive(self, now_ns: int, ask_after_ns: int) -> int | None:
        """
        Take in the answer; return when the next request leaves, None if there is none.

        :param ask_after_ns: the server's pace
        """
        self._rule.answered(now_ns, with_rows=True, ask_after_ns=ask_after_ns)
        self.index += 1
        if self.index >= self._quota:
            return None
        due_ns = self._rule.due_ns
        return now_ns if due_ns is None else max(due_ns, now_ns)
