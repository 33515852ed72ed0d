# SPDX-License-Identifier: Apache-2.0
"""A fleet of episodes in virtual time: robots, a controller and an LLM server."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from xinfer_ros.brain.controller import (
    Action,
    Arrival,
    Controller,
    ControllerState,
    Gauges,
    TurnUsage,
)
from xinfer_ros.brain.llm_server import Call, LlmServer, ServerModel, StepEnd
from xinfer_ros.brain.scenario import NS, BrainScenario, Change
from xinfer_ros.brain.trace import EpisodeTrace

TICK_NS = NS
SAMPLE_NS = 5 * NS
Draw = Callable[[int, int], EpisodeTrace]  # robot, number of the episode


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """
    A call that has been answered.

    :param number: of the turn in its episode, from 0
    :param hit: whether everything was cached that could be; None for a first turn
    """

    at_ns: int
    robot: int
    number: int
    prompt: int
    cached: int
    hit: bool | None
    waited_ns: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What the controller knew at a time."""

    at_ns: int
    state: ControllerState


@dataclass(slots=True)
class SimulationLog:
    """What has happened."""

    turns: list[TurnRecord] = field(default_factory=list)
    episode_ends: list[tuple[int, int]] = field(default_factory=list)  # time, robot
    samples: list[Sample] = field(default_factory=list)
    parks: int = 0


@dataclass(slots=True)
class _Running:
    """An episode under way."""

    robot: int
    trace: EpisodeTrace
    prompt: int = 0
    next_turn: int = 0
    may_call: bool = False
    wants_call: bool = True
    call: Call | None = None
    called_ns: int = 0


class BrainSimulation:
    """
    Runs a scenario.

    :param draw: gives the episodes; the same for every controller that is compared
    :param max_context: longest prompt [tokens]
    """

    def __init__(
        self,
        scenario: BrainScenario,
        controller: Controller,
        model: ServerModel,
        draw: Draw,
        max_context: int,
    ) -> None:
        self._scenario = scenario
        self._controller = controller
        self._server = LlmServer(model)
        self._draw = draw
        self._max_context = max_context
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._now = 0
        self._stepping = False
        self._appended = 1.0
        self._episodes: dict[str, _Running] = {}
        self._numbers: dict[int, int] = {}
        self._log = SimulationLog()

    def run(self) -> SimulationLog:
        """Run it to its end and return what has happened."""
        for robot, joins_s in enumerate(self._scenario.joins_s):
            self._at(round(joins_s * NS), partial(self._arrive, robot))
        for change in self._scenario.changes:
            self._at(round(change.at_s * NS), partial(self._change, change))
        self._tick()
        end_ns = round(self._scenario.duration_s * NS)
        while self._events and self._events[0][0] <= end_ns:
            self._now, _, happen = heapq.heappop(self._events)
            happen()
            if not self._stepping:
                self._step()
        return self._log

    def _at(self, at_ns: int, happen: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_ns, self._order, happen))

    def _change(self, change: Change) -> None:
        self._server.resize(change.capacity)
        self._appended = change.appended

    def _tick(self) -> None:
        server = self._server
        gauges = Gauges(
            capacity_tokens=server.model.nominal_tokens,
            block_tokens=server.model.block_tokens,
            usage=server.usage,
            running=server.running,
            waiting=server.waiting,
            preemptions=0,
            prefix_queries=server.prefix_queries,
            prefix_hits=server.prefix_hits,
        )
        self._controller.metrics(gauges, self._now)
        self._decide()
        if self._now % SAMPLE_NS == 0:
            self._log.samples.append(Sample(self._now, self._controller.state(self._now)))
        self._at(self._now + TICK_NS, self._tick)

    def _arrive(self, robot: int) -> None:
        number = self._numbers.get(robot, 0)
        self._numbers[robot] = number + 1
        trace = self._draw(robot, number)
        self._episodes[trace.episode] = _Running(robot, trace)
        self._controller.arrive(Arrival(episode=trace.episode, robot=trace.robot), self._now)
        self._decide()

    def _decide(self) -> None:
        for decision in self._controller.decide(self._now):
            episode = self._episodes[decision.episode]
            episode.may_call = decision.action is not Action.PARK
            self._log.parks += not episode.may_call
            self._call(episode)

    def _want(self, episode: _Running) -> None:
        episode.wants_call = True
        self._call(episode)

    def _call(self, episode: _Running) -> None:
        """Send the next turn to the server if the robot wants it and the controller lets it."""
        if not (episode.may_call and episode.wants_call):
            return
        turn = episode.trace.turns[episode.next_turn]
        scale = self._appended if episode.next_turn else 1.0
        prompt = episode.prompt + max(round(scale * turn.appended_tokens), 1)
        episode.prompt = min(prompt, self._max_context)
        episode.wants_call = False
        episode.call = Call(episode.trace.episode, episode.prompt, turn.output_tokens)
        episode.called_ns = self._now
        self._server.submit(episode.call)
        self._controller.turn_started(episode.trace.episode, self._now)

    def _step(self) -> None:
        """Let the server begin its next step."""
        upcoming = self._events[0][0] if self._events else self._now + TICK_NS
        end = self._server.step(self._now, upcoming)
        if end is not None:
            self._stepping = True
            self._at(end.at_ns, partial(self._stepped, end))

    def _stepped(self, end: StepEnd) -> None:
        self._stepping = False
        for call in end.answering:
            self._controller.turn_answering(call.session, self._now)
        for call in end.done:
            self._answered(self._episodes[call.session], call)
        if end.done:
            self._decide()

    def _answered(self, episode: _Running, call: Call) -> None:
        name = episode.trace.episode
        usage = TurnUsage(
            prompt_tokens=call.prompt, cached_tokens=call.cached, output_tokens=call.output
        )
        self._controller.turn_ended(name, usage, self._now)
        self._record(episode, call)
        episode.next_turn += 1
        if episode.next_turn < len(episode.trace.turns):
            gap_ns = episode.trace.turns[episode.next_turn].gap_ns
            self._at(self._now + gap_ns, partial(self._want, episode))
            return
        del self._episodes[name]
        self._controller.ended(name, self._now)
        self._log.episode_ends.append((self._now, episode.robot))
        self._at(self._now, partial(self._arrive, episode.robot))

    def _record(self, episode: _Running, call: Call) -> None:
        number = episode.next_turn
        self._log.turns.append(
            TurnRecord(
                at_ns=self._now,
                robot=episode.robot,
                number=number,
                prompt=call.prompt,
                cached=call.cached,
                hit=call.hit if number else None,
                waited_ns=call.first_token_ns - episode.called_ns,
            )
        )
