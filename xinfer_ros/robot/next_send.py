# SPDX-License-Identifier: Apache-2.0
"""When a robot asks again: a minimum period, one request in flight, and a retry after loss."""

from dataclasses import dataclass, replace

from xinfer_ros.core.request import retry_after_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """
    The request that a robot waits for.

    :param executed_steps: as the observation said; the answer must start there [steps]
    """

    request_id: int
    sent_ns: int
    budget_ns: int
    executed_steps: int


class NextSend:
    """
    The rule ``s' = max(s + TE, r)``: at most one request in flight.

    After an answer without rows the next request waits ``backoff_ns``, so that a refusing server
    is not flooded; a request without any answer is given up after ``retry_after_ns``, and the
    next one leaves at once.

    :param minimum_period_ns: ``TE`` [ns]
    :param backoff_ns: pause after a refusal [ns]
    """

    def __init__(self, minimum_period_ns: int, backoff_ns: int) -> None:
        self.minimum_period_ns = minimum_period_ns  # may change between requests
        self._backoff_ns = backoff_ns
        self._not_before_ns: int | None = None
        self._in_flight: InFlight | None = None

    @property
    def in_flight(self) -> InFlight | None:
        """Return the request that is waited for."""
        return self._in_flight

    @property
    def due_ns(self) -> int | None:
        """Return when the next request may leave, None if none was sent; see ``is_due``."""
        return self._not_before_ns

    @property
    def lost_ns(self) -> int | None:
        """Return when the request in flight is given up, None if there is none [ns]."""
        waits_for = self._in_flight
        return (
            None if waits_for is None else waits_for.sent_ns + retry_after_ns(waits_for.budget_ns)
        )

    def is_due(self, now_ns: int) -> bool:
        """Return whether the next request may leave now."""
        if self._in_flight is not None:
            return False
        return self._not_before_ns is None or now_ns >= self._not_before_ns

    def sent(self, request: InFlight) -> None:
        """Note that a request has left; it is the one in flight."""
        self._in_flight = request
        self._not_before_ns = request.sent_ns + self.minimum_period_ns

    def set_budget(self, budget_ns: int) -> None:
        """Change the response budget of the request in flight [ns]."""
        if self._in_flight is not None:
            self._in_flight = replace(self._in_flight, budget_ns=budget_ns)

    def answered(self, now_ns: int, *, with_rows: bool, ask_after_ns: int = 0) -> None:
        """
        Note that the request in flight was answered.

        :param ask_after_ns: the server's pace: the next request leaves no sooner than this after
            the one in flight, nor than the minimum period after it [ns]
        """
        if self._in_flight is not None:
            asked_ns = self._in_flight.sent_ns + ask_after_ns
            self._not_before_ns = max(self._not_before_ns or asked_ns, asked_ns)
        self._in_flight = None
        if not with_rows:
            floor = now_ns + self._backoff_ns
            self._not_before_ns = max(self._not_before_ns or floor, floor)

    def give_up_if_lost(self, now_ns: int) -> InFlight | None:
        """Return the request in flight if its time is over, and stop waiting for it."""
        lost, lost_ns = self._in_flight, self.lost_ns
        if lost_ns is None or now_ns < lost_ns:
            return None
        self.withdraw()  # a robot that waits for its period as well might run out of rows
        return lost

    def withdraw(self) -> None:
        """Forget the request in flight and let the next one leave at once."""
        self._in_flight = None
        self._not_before_ns = None
