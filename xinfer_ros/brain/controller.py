# SPDX-License-Identifier: Apache-2.0
"""
What decides which episodes may call the LLM; driven alike by the simulator and the gateway.

Values in, decisions out: every method takes the time as an argument, and nothing here reads a
clock, starts a thread or does I/O. Calls come from one thread, their times never go back. A
driver reports events, calls ``decide`` after each of them and at least once a second, and carries
out what it returns: the controller takes it for done.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Standing(Enum):
    """Where an episode stands."""

    QUEUED = 'QUEUED'  # never admitted yet
    ADMITTED = 'ADMITTED'
    DRAINING = 'DRAINING'  # to be parked when the turn that runs has ended
    PARKED = 'PARKED'  # admitted before; its next turn waits for a RESUME


class Action(Enum):
    """What is decided on an episode."""

    ADMIT = 'ADMIT'
    PARK = 'PARK'  # lets a running turn end, then holds the next one
    RESUME = 'RESUME'


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """
    An episode that wants to be admitted.

    :param episode: its id, unique among those that have not ended
    :param robot: whose it is; fairness counts by robot
    :param priority: higher ones are admitted first
    :param context_hint: the longest prompt that its agent expects, None if unknown [tokens]
    """

    episode: str
    robot: str
    priority: int = 0
    context_hint: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """
    What a turn that is over has used, as the LLM server reports it.

    :param prompt_tokens: the whole prompt [tokens]
    :param cached_tokens: of these, found in the prefix cache; None if the server does not tell
    :param output_tokens: generated [tokens]
    """

    prompt_tokens: int
    cached_tokens: int | None
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """
    The LLM server's own metrics; None where a version does not have one.

    :param capacity_tokens: size of the prefix cache by its configuration [tokens]
    :param block_tokens: size of a cache block [tokens]
    :param usage: share of the blocks that running requests hold, 0 to 1; low while it thrashes
    :param running: requests
    :param waiting: requests
    :param preemptions: since its start
    :param prefix_queries: prompt tokens looked for in the prefix cache, since its start [tokens]
    :param prefix_hits: of these, found [tokens]
    """

    capacity_tokens: int | None = None
    block_tokens: int | None = None
    usage: float | None = None
    running: int | None = None
    waiting: int | None = None
    preemptions: int | None = None
    prefix_queries: int | None = None
    prefix_hits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    What happens to an episode now.

    :param reason: why, in a sentence with the figures
    """

    episode: str
    action: Action
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    Where an episode stands, for whoever waits for it.

    :param position: in the line of those that wait, 1 is next; None if it does not wait
    :param estimate_ns: how long it will probably wait; None if unknown or not waiting
    """

    episode: str
    standing: Standing
    position: int | None
    estimate_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """
    What a controller knows, for status pages and pictures.

    :param admitted: episodes that may call, those that drain included
    :param parked: episodes admitted before that must wait
    :param queued: episodes never admitted yet
    :param held_tokens: contexts of the admitted episodes, in whole blocks [tokens]
    :param estimate_tokens: the cache's effective capacity, None if it is not estimated [tokens]
    :param limit: the largest number of episodes admitted, None if the number is not limited
    :param hit_ratio: prompt tokens found cached in the last turns, None before there are any
    :param warnings: what somebody should look at, sentences
    """

    admitted: int
    parked: int
    queued: int
    held_tokens: int
    estimate_tokens: int | None
    limit: int | None
    hit_ratio: float | None
    warnings: tuple[str, ...]


class Controller(Protocol):
    """Admits, parks and resumes episodes."""

    @property
    def name(self) -> str:
        """Return its name as ``xinfer brain`` knows it."""
        ...

    def arrive(self, arrival: Arrival, now_ns: int) -> None:
        """
        Take note of an episode that wants to be admitted.

        :raises ConfigError: if an episode of that id is there already
        """
        ...

    def turn_started(self, episode: str, now_ns: int, *, kept_share: float = 1.0) -> None:
        """
        Take note of a call that has gone to the LLM server.

        :param kept_share: of the episode's last prompt, the share that is a byte-equal prefix of
            this one, 0 to 1; a miss past it is no eviction
        """
        ...

    def turn_answering(self, episode: str, now_ns: int) -> None:
        """Take note of the first token of an answer; optional, it sharpens the estimate."""
        ...

    def turn_ended(self, episode: str, usage: TurnUsage | None, now_ns: int) -> None:
        """
        Take note of the end of a call.

        :param usage: None if the call failed or the server reports nothing
        """
        ...

    def turn_refused(self, episode: str, now_ns: int) -> None:
        """Take note that the LLM server has refused a call: it has computed nothing."""
        ...

    def ended(self, episode: str, now_ns: int) -> None:
        """Take note that an episode is over; unknown ones are ignored."""
        ...

    def metrics(self, gauges: Gauges | None, now_ns: int) -> None:
        """Take note of the server's metrics, about once a second; None if they can't be read."""
        ...

    def decide(self, now_ns: int) -> tuple[Decision, ...]:
        """Return what changes now, in the order in which it is to be carried out."""
        ...

    def place(self, episode: str, now_ns: int) -> Place | None:
        """Return where an episode stands, None if it is unknown."""
        ...

    def state(self, now_ns: int) -> ControllerState:
        """Return what it knows."""
        ...
