# SPDX-License-Identifier: Apache-2.0
"""A controller made of a rule, the book of episodes and the guards; see controller.py."""

from xinfer_ros.brain.book import Book, Record
from xinfer_ros.brain.controller import (
    Action,
    Arrival,
    ControllerState,
    Decision,
    Gauges,
    Place,
    Standing,
    TurnUsage,
)
from xinfer_ros.brain.guards import HitWatch, PreemptionGuard
from xinfer_ros.brain.prefix_cache import held_tokens
from xinfer_ros.brain.rule import Rule


class EpisodeAdmission:
    """
    Implements ``Controller``: the rule says how many, the book says who.

    :param rule: what differs between controllers
    :param guard: against preemptions, None for none
    :param block_tokens: size of a cache block until the server tells it [tokens]
    """

    def __init__(self, rule: Rule, guard: PreemptionGuard | None, block_tokens: int = 16) -> None:
        self._rule = rule
        self._guard = guard
        self._block_tokens = block_tokens
        self._book = Book()
        self._hits = HitWatch()

    @property
    def name(self) -> str:
        """Return the controller's name."""
        return self._rule.name

    def arrive(self, arrival: Arrival, now_ns: int) -> None:
        """Put an episode into the line."""
        self._book.add(arrival, now_ns)

    def turn_started(self, episode: str, now_ns: int, *, kept_share: float = 1.0) -> None:
        """Take note of a call that has gone to the LLM server."""
        record = self._book.get(episode)
        record.running = True
        self._rule.turn_started(record, kept_share, now_ns)

    def turn_answering(self, episode: str, now_ns: int) -> None:
        """Take note of the first token of an answer."""
        record = self._book.find(episode)
        if record is not None:
            self._rule.turn_answering(record, now_ns)

    def turn_ended(self, episode: str, usage: TurnUsage | None, now_ns: int) -> None:
        """Take note of the end of a call."""
        record = self._book.find(episode)
        if record is None:
            return
        self._rule.turn_ended(record, usage, now_ns)
        if usage is not None and record.turns:
            self._hits.turn_ended(usage)
        record.turns += 1
        if usage is not None:
            record.tokens = usage.prompt_tokens + usage.output_tokens
        self._book.served(record)
        self._rest(record, now_ns)

    def turn_refused(self, episode: str, now_ns: int) -> None:
        """Take note that the LLM server has refused a call: it has computed nothing."""
        record = self._book.find(episode)
        if record is not None:
            self._rule.turn_refused(record, now_ns)
            self._rest(record, now_ns)

    def _rest(self, record: Record, now_ns: int) -> None:
        """Let an episode be between two turns."""
        record.running = False
        if record.standing is Standing.DRAINING:
            self._book.drained(record, now_ns)

    def ended(self, episode: str, now_ns: int) -> None:
        """Forget an episode."""
        record = self._book.remove(episode)
        if record is not None:
            self._rule.ended(record, now_ns)

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Take note of the server's metrics."""
        if gauges is not None and gauges.block_tokens:
            self._block_tokens = gauges.block_tokens
        if self._guard is not None:
            self._guard.metrics(gauges, len(self._book.admitted), now_ns)
        self._rule.metrics(gauges, now_ns)

    def decide(self, now_ns: int) -> tuple[Decision, ...]:
        """Return whom to park, then whom to let in."""
        return (*self._parks(now_ns), *self._admissions(now_ns))

    def place(self, episode: str, now_ns: int) -> Place | None:
        """Return where an episode stands, None if it is unknown."""
        record = self._book.find(episode)
        if record is None:
            return None
        position, interval_ns = self._book.position(record), self._book.interval_ns(now_ns)
        known = position is not None and interval_ns is not None
        return Place(
            episode=episode,
            standing=record.standing,
            position=position,
            estimate_ns=position * interval_ns if known else None,  # type: ignore[operator]
        )

    def state(self, now_ns: int) -> ControllerState:
        """Return what it knows."""
        admitted, waiting = self._book.admitted, self._book.waiting
        parked = sum(record.standing is Standing.PARKED for record in waiting)
        limits = [n for n in (self._rule.limit, self._guarded(now_ns)) if n is not None]
        return ControllerState(
            admitted=len(admitted),
            parked=parked,
            queued=len(waiting) - parked,
            held_tokens=sum(held_tokens(r.tokens, self._block_tokens) for r in admitted),
            estimate_tokens=self._rule.estimate_tokens,
            limit=min(limits, default=None),
            hit_ratio=self._hits.ratio,
            warnings=self._hits.warnings,
        )

    def _guarded(self, now_ns: int) -> int | None:
        return self._guard.limit(now_ns) if self._guard is not None else None

    def _parks(self, now_ns: int) -> list[Decision]:
        parks: list[Decision] = []
        staying = [r for r in self._book.admitted if r.standing is Standing.ADMITTED]
        while len(staying) > 1 and (reason := self._excess(staying, now_ns)):
            record = self._rule.parked_first(staying, now_ns)
            self._book.park(record, now_ns)
            parks.append(
                Decision(episode=record.arrival.episode, action=Action.PARK, reason=reason)
            )
            staying.remove(record)
        return parks

    def _excess(self, staying: list[Record], now_ns: int) -> str:
        limit = self._guarded(now_ns)
        if limit is not None and len(staying) > limit:
            return f'requests preempt one another: {limit} episodes for 30 s'
        return self._rule.why if self._rule.overshoots(staying, now_ns) else ''

    def _admissions(self, now_ns: int) -> list[Decision]:
        admissions = []
        limit = self._guarded(now_ns)
        admitted = self._book.admitted
        while (record := self._book.next(self._rule.order(now_ns))) is not None:
            if limit is not None and len(admitted) >= limit:
                break
            if admitted and not self._rule.admits(admitted, record, now_ns):
                break
            was_parked = record.standing is Standing.PARKED
            self._book.admit(record, now_ns)
            action = Action.RESUME if was_parked else Action.ADMIT
            admissions.append(
                Decision(episode=record.arrival.episode, action=action, reason=self._rule.why)
            )
            admitted = self._book.admitted
        return admissions
