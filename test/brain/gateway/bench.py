# SPDX-License-Identifier: Apache-2.0
"""A gateway before scripted LLM servers, and agents that call it; all in one virtual time."""

from collections.abc import Sequence
from typing import Any

import aiohttp
import openai

from xinfer_ros.brain.gateway.choice import make_controller
from xinfer_ros.brain.gateway.gateway import Gateway
from xinfer_ros.brain.scripted_engine import ScriptedCosts
from xinfer_ros.brain.scripted_server import ScriptedServer
from xinfer_ros.config import BrainConfig

from .stub import Stub
from .virtual_time import VirtualLoop


class Bench:
    """
    Holds a gateway with its servers while it is entered.

    :param loop: that everything runs in
    :param costs: of each LLM server
    :param stubs: other LLM servers in place of these
    :param more_upstreams: addresses of others
    :param settings: of the gateway
    """

    def __init__(
        self,
        loop: VirtualLoop,
        *,
        costs: Sequence[ScriptedCosts] = (ScriptedCosts(),),
        has_metrics: bool = True,
        stubs: Sequence[Stub] = (),
        more_upstreams: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        self.loop, self._settings = loop, settings
        self._stubs, self._more = stubs, more_upstreams
        self.servers = [
            ScriptedServer(cost, has_metrics=has_metrics) for cost in ([] if stubs else costs)
        ]
        self._agents: list[openai.AsyncOpenAI] = []

    async def __aenter__(self) -> 'Bench':
        """Start everything."""
        for server in (*self.servers, *self._stubs):
            await server.start()
        given = {'controller': 'open', **self._settings}
        self.config = BrainConfig(port=0, upstreams=self._urls(), **given)
        self.gateway = Gateway(self.config, self.loop, lambda: make_controller(self.config))
        await self.gateway.start()
        self.url = f'http://127.0.0.1:{self.gateway.port}'
        self.http = aiohttp.ClientSession(base_url=self.url)
        return self

    async def __aexit__(self, *error: object) -> None:
        """End everything."""
        for agent in self._agents:
            await agent.close()
        await self.http.close()
        await self.gateway.close()
        for server in (*self.servers, *self._stubs):
            await server.close()

    def _urls(self) -> tuple[str, ...]:
        return (*(server.url for server in (*self.servers, *self._stubs)), *self._more)

    def agent(self, episode: str, **options: Any) -> openai.AsyncOpenAI:
        """Return an agent whose calls belong to an episode."""
        given = {'api_key': 'none', 'max_retries': 0, **options}
        agent = openai.AsyncOpenAI(base_url=f'{self.url}/e/{episode}/v1', **given)
        self._agents.append(agent)
        return agent

    async def open(self, **wish: Any) -> dict[str, Any]:
        """Open an episode; return its facts."""
        async with self.http.post('/episodes', json=wish) as answer:
            facts: dict[str, Any] = await answer.json()
            return {'status': answer.status, 'headers': answer.headers, **facts}

    async def show(self, episode: str) -> dict[str, Any]:
        """Return the facts of an episode."""
        async with self.http.get(f'/episodes/{episode}') as answer:
            return dict(await answer.json())

    async def end(self, episode: str) -> dict[str, Any]:
        """End an episode."""
        async with self.http.delete(f'/episodes/{episode}') as answer:
            return dict(await answer.json())
