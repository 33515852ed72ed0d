# SPDX-License-Identifier: Apache-2.0
"""Drives a controller by hand: episodes that come, have turns, and go."""

from dataclasses import dataclass, field

from xinfer_ros.brain.controller import Action, Arrival, Controller, Decision, TurnUsage

NS = 1_000_000_000


@dataclass(slots=True)
class ByHand:
    """A controller with a clock that moves a second at each event."""

    controller: Controller
    now_ns: int = 0
    decisions: list[Decision] = field(default_factory=list)

    def arrive(self, episode: str, robot: str = '', priority: int = 0, hint: int | None = None):
        arrival = Arrival(
            episode=episode, robot=robot or episode, priority=priority, context_hint=hint
        )
        self.controller.arrive(arrival, self.now_ns)
        return self.decide()

    def turn(
        self, episode: str, prompt: int, cached: int | None = 0, output: int = 0, kept: float = 1.0
    ):
        """Let an episode have a whole turn."""
        self.start(episode, kept)
        usage = TurnUsage(prompt_tokens=prompt, cached_tokens=cached, output_tokens=output)
        return self.end(episode, usage)

    def start(self, episode: str, kept: float = 1.0) -> None:
        self.now_ns += NS
        self.controller.turn_started(episode, self.now_ns, kept_share=kept)
        self.controller.turn_answering(episode, self.now_ns)

    def end(self, episode: str, usage: TurnUsage | None):
        self.now_ns += NS
        self.controller.turn_ended(episode, usage, self.now_ns)
        return self.decide()

    def refused(self, episode: str):
        """Let the server refuse a call."""
        self.now_ns += NS
        self.controller.turn_started(episode, self.now_ns)
        self.controller.turn_refused(episode, self.now_ns)
        return self.decide()

    def ended(self, episode: str):
        self.controller.ended(episode, self.now_ns)
        return self.decide()

    def decide(self) -> list[tuple[str, Action]]:
        found = self.controller.decide(self.now_ns)
        self.decisions += found
        return [(decision.episode, decision.action) for decision in found]
