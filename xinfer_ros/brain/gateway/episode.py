# SPDX-License-Identifier: Apache-2.0
"""One episode as the gateway keeps it, and what it tells of it."""

import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from xinfer_ros.brain.controller import Standing, TurnUsage
from xinfer_ros.brain.gateway.fingerprint import Fingerprint
from xinfer_ros.errors import Reason, Rejected

_ID = re.compile(r'[A-Za-z0-9][A-Za-z0-9._:-]{0,127}')


class Phase(Enum):
    """What an agent or robot is told of its episode; the constants of action/RunEpisode.action."""

    QUEUED = 0
    ADMITTED = 1
    PARKED = 2
    DRAINING = 3
    BRAIN_UNAVAILABLE = 4
    ENDED = 5

    @property
    def waits(self) -> bool:
        """Return whether a call of the episode would not go to the LLM server now."""
        return self in (Phase.QUEUED, Phase.PARKED, Phase.BRAIN_UNAVAILABLE)


class Outcome(IntEnum):
    """How an episode ended; the constants of action/RunEpisode.action."""

    ENDED = 0
    NOT_ADMITTED = 1
    LEASE_EXPIRED = 2
    SHUTDOWN = 3


class Ending(Enum):
    """How a call at the LLM server ended."""

    WHOLE = 'answered'
    REFUSED = 'refused by the server, which has computed nothing'
    BROKEN = 'broken off by the server or the agent'


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRequest:
    """
    A wish for an episode.

    :param episode: its id, part of URLs
    :param robot: whose brain it is; fairness counts by robot
    :param task: what it is about, for people
    :param priority: higher ones are admitted first, 0 to 255
    :param max_wait_ns: the longest wait for a place [ns]
    :param context_hint: the longest prompt that it will have, None: not known [tokens]
    :param is_implicit: made for a call of an unknown id; nobody sends heartbeats
    """

    episode: str
    robot: str
    task: str = ''
    priority: int = 0
    max_wait_ns: int
    context_hint: int | None = None
    is_implicit: bool = False

    def __post_init__(self) -> None:
        """
        Refuse what can't stand in a URL.

        :raises Rejected: REJECTED_EPISODE
        """
        for name in ('episode', 'robot'):
            value = getattr(self, name)
            if not _ID.fullmatch(value):
                raise Rejected(
                    Reason.REJECTED_EPISODE,
                    f'{name} is {value[:140]!r}; allowed: 1 to 128 letters, digits or . _ : -, '
                    'the first a letter or digit',
                )
        if not 0 <= self.priority <= 255:
            raise Rejected(
                Reason.REJECTED_EPISODE, f'priority is {self.priority}; allowed: 0 to 255'
            )


@dataclass(slots=True, kw_only=True)
class EpisodeTotals:
    """What an episode has used so far; ``parked_ns`` is complete while it is not parked."""

    turns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    parked_ns: int = 0


@dataclass(slots=True, kw_only=True)
class Episode:
    """
    The state of an episode; changed by ``Admission`` alone.

    :param upstream: name of the LLM server that it belongs to
    :param standing: as its controller decided
    :param was_admitted: since it began, on this server or another one
    :param lease_end_ns: without a sign of life until then it ends [ns]
    :param called_ns: when its agent was heard of last, or it was admitted [ns]
    :param calls: of its agent that are open, waiting or running
    :param running: calls that are at the LLM server
    :param usage: of those at once, the largest that has ended
    :param is_computed: whether the server has computed something for one of them
    :param parked_since_ns: None while it is not parked [ns]
    :param fingerprint: of its latest prompt
    :param outcome: how it ends, as soon as that is known
    :param version: rises with every change that somebody may wait for
    """

    request: EpisodeRequest
    upstream: str
    arrived_ns: int
    lease_ns: int
    lease_end_ns: int
    standing: Standing = Standing.QUEUED
    was_admitted: bool = False
    called_ns: int = 0
    calls: int = 0
    running: int = 0
    usage: TurnUsage | None = None
    is_computed: bool = False
    parked_since_ns: int | None = None
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    totals: EpisodeTotals = field(default_factory=EpisodeTotals)
    outcome: Outcome | None = None
    is_over: bool = False
    version: int = 0

    @property
    def id(self) -> str:
        """Return the id."""
        return self.request.episode

    def extend(self, now_ns: int) -> None:
        """Let the lease last from now on, unless it lasts longer already."""
        self.lease_end_ns = max(self.lease_end_ns, now_ns + self.lease_ns)

    def count(self, usage: TurnUsage | None, ending: Ending) -> None:
        """Count a call that has left the LLM server; the server told ``usage``, or none."""
        self.running -= 1
        self.is_computed |= ending is not Ending.REFUSED
        self.totals.turns += ending is Ending.WHOLE
        if usage is None:
            return
        self.totals.prompt_tokens += usage.prompt_tokens
        self.totals.cached_tokens += usage.cached_tokens or 0
        self.totals.output_tokens += usage.output_tokens
        if self.usage is None or usage.prompt_tokens > self.usage.prompt_tokens:
            self.usage = usage

    def parked_ns(self, now_ns: int) -> int:
        """Return how long it has been parked in all [ns]."""
        since_ns = self.parked_since_ns
        return self.totals.parked_ns + (0 if since_ns is None else now_ns - since_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """
    An episode at one moment, for messages and pages.

    :param position: place in the line, 1: the next; None: it does not wait
    :param estimate_ns: time until it goes on, None: not known [ns]
    :param detail: in words
    """

    episode: str
    robot: str
    task: str
    upstream: str
    phase: Phase
    position: int | None
    estimate_ns: int | None
    detail: str
    turns: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    parked_ns: int
    lease_left_ns: int
    outcome: Outcome | None
    version: int
