# SPDX-License-Identifier: Apache-2.0
"""Agents whose contexts grow from turn to turn, one episode after the other."""

import asyncio
import random
from dataclasses import dataclass

from .bench import Bench

MODEL = 'brain'


@dataclass(slots=True)
class Turns:
    """What all turns came to; a hit is a turn whose whole earlier prompt was cached."""

    done: int = 0
    hits: int = 0
    judged: int = 0

    @property
    def hit_share(self) -> float:
        """Return the share of full-prefix hits among turns that are not the first."""
        return self.hits / self.judged if self.judged else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How sessions grow [characters, a token has four]."""

    tells: bool = False  # whether agents say how long their contexts become
    first: int = 4000
    appended: int = 1600
    turns: int = 12
    gap_s: float = 0.5

    @property
    def longest(self) -> int:
        """Return the last prompt of an episode, about [tokens]."""
        return (self.first + (self.turns - 1) * self.appended) // 4 + 20 * self.turns


class Robot:
    """
    A robot that runs episodes until time is over.

    :param bench: whose gateway it calls
    :param name: of the robot
    :param growth: of its contexts
    :param turns: counts
    """

    def __init__(self, bench: Bench, name: str, growth: Growth, turns: Turns) -> None:
        self._bench, self._name, self._growth, self._turns = bench, name, growth, turns
        self._random = random.Random(name)

    async def run(self, end_s: float) -> None:
        """Run one episode after the other."""
        number = 0
        while self._bench.loop.time() < end_s:
            number += 1
            await self._episode(f'{self._name}-{number}', end_s)

    async def _episode(self, episode: str, end_s: float) -> None:
        growth = self._growth
        hint = {'context_hint': growth.longest} if growth.tells else {}
        facts = await self._bench.open(
            robot=self._name, episode=episode, max_wait_s=3600.0, **hint
        )
        assert facts['status'] == 201, facts
        agent = self._bench.agent(episode)
        messages = [{'role': 'user', 'content': self._text(self._growth.first)}]
        before = 0
        for _ in range(self._growth.turns):
            if self._bench.loop.time() >= end_s:
                break
            answer = await agent.chat.completions.create(
                model=MODEL, messages=messages, max_tokens=8
            )  # type: ignore[call-overload]
            usage = answer.usage
            self._turns.done += 1
            if before:
                self._turns.judged += 1
                block = self._bench.servers[0].engine.costs.block_tokens
                self._turns.hits += (
                    usage.prompt_tokens_details.cached_tokens >= before // block * block
                )
            before = usage.prompt_tokens
            messages.append({'role': 'assistant', 'content': answer.choices[0].message.content})
            messages.append({'role': 'user', 'content': self._text(self._growth.appended)})
            await self._bench.loop.lives(self._random.uniform(0.5, 1.5) * self._growth.gap_s)
        await agent.close()
        await self._bench.end(episode)

    def _text(self, characters: int) -> str:
        return ''.join(f'{self._random.randrange(16**4):04x}' for _ in range(characters // 4))


async def run_sessions(bench: Bench, robots: int, seconds: float, growth: Growth) -> Turns:
    """Let robots run episodes for a while; return what their turns came to."""
    turns = Turns()
    end_s = bench.loop.time() + seconds
    fleet = [Robot(bench, f'r{i}', growth, turns).run(end_s) for i in range(robots)]
    await asyncio.gather(*fleet)
    return turns
