# SPDX-License-Identifier: Apache-2.0
"""LLM servers that freeze, die and come back (BG-03)."""

import asyncio
from typing import Any

import openai
import pytest

from xinfer_ros.brain.scripted_engine import ScriptedCosts

from .bench import Bench
from .virtual_time import VirtualLoop, run_virtually

SAID: Any = [{'role': 'user', 'content': 'pick up the cube'}]
ASK: dict[str, Any] = {'model': 'brain', 'messages': SAID, 'max_tokens': 50}


@pytest.mark.parametrize('has_metrics', [True, False])
def test_a_frozen_engine_is_found_by_its_tokens_though_health_is_good(has_metrics: bool) -> None:
    """BG-03: down within 10 s of the last token, up again after one completed probe."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, has_metrics=has_metrics) as bench:
            engine = bench.servers[0].engine
            await bench.open(robot='r2', episode='waits')
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            await anext(aiter(stream))
            engine.freeze()
            frozen_s = loop.time()
            async with bench.http.get(f'{bench.servers[0].url}/health') as answer:
                assert answer.status == 200
            with pytest.raises(
                openai.APIError, match='BRAIN_UNAVAILABLE: 1 calls and a probe are'
            ):
                async for _ in stream:
                    pass
            assert loop.time() - frozen_s < 10.0
            assert (await bench.show('waits'))['state'] == 'BRAIN_UNAVAILABLE'
            with pytest.raises(openai.InternalServerError, match='nothing has come') as refusal:
                await bench.agent('waits').chat.completions.create(**ASK)
            assert refusal.value.status_code == 503
            assert refusal.value.response.headers['Retry-After'] == '2'
            engine.thaw()
            await loop.lives(3.0)
            assert (await bench.show('waits'))['state'] == 'ADMITTED'
            assert (await bench.agent('waits').chat.completions.create(**ASK)).usage is not None

    run_virtually(work)


def test_a_frozen_engine_is_found_though_its_agent_gives_up_each_call_too_soon() -> None:
    """BG-03: what a call has begun, its probe ends."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            bench.servers[0].engine.freeze()
            began_s = loop.time()
            for _ in range(2):
                with pytest.raises((openai.APITimeoutError, openai.InternalServerError)):
                    await bench.agent('e1', timeout=5.0).chat.completions.create(**ASK)
            assert loop.time() - began_s < 10.0
            assert (await bench.show('e1'))['state'] == 'BRAIN_UNAVAILABLE'

    run_virtually(work)


def test_a_long_answer_in_one_piece_is_no_death() -> None:
    """No byte for a minute: a probe, or the metrics, show that the engine works."""

    async def work(loop: VirtualLoop) -> None:
        for has_metrics in (True, False):
            async with Bench(loop, has_metrics=has_metrics, metrics_period_s=5.0) as bench:
                bench.servers[0].engine.costs = ScriptedCosts(step_s=0.5)
                began_s = loop.time()
                answer = await bench.agent('e1').chat.completions.create(**ASK)
                assert answer.usage is not None
                assert loop.time() - began_s > 24.0

    run_virtually(work)


def test_a_server_that_is_gone_is_found_at_once_and_its_episodes_move() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, costs=(ScriptedCosts(), ScriptedCosts())) as bench:
            agent = bench.agent('e1')
            await agent.chat.completions.create(**ASK)
            first = (await bench.show('e1'))['upstream']
            assert first == bench.servers[0].url
            await bench.servers[0].close()
            await loop.lives(1.5)
            await agent.chat.completions.create(**ASK)
            assert (await bench.show('e1'))['upstream'] == bench.servers[1].url
            async with bench.http.get('/status.json') as answer:
                states = {u['name']: u['state'] for u in (await answer.json())['upstreams']}
            assert states == {first: 'DOWN', bench.servers[1].url: 'UP'}

    run_virtually(work)


def test_an_episode_whose_turn_was_cut_goes_on_with_the_server_that_lives() -> None:
    """BG-03: the call is told, and the next one is answered elsewhere."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, costs=(ScriptedCosts(), ScriptedCosts())) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            await anext(aiter(stream))
            bench.servers[0].engine.freeze()
            with pytest.raises(openai.APIError, match='BRAIN_UNAVAILABLE'):
                async for _ in stream:
                    pass
            facts = await bench.show('e1')
            assert (facts['state'], facts['upstream']) == ('ADMITTED', bench.servers[1].url)
            assert (await bench.agent('e1').chat.completions.create(**ASK)).usage is not None
            bench.servers[0].engine.thaw()
            await loop.lives(5.0)
            assert (await bench.show('e1'))['upstream'] == bench.servers[1].url

    run_virtually(work)


def test_who_waits_for_a_place_hears_at_once_that_the_server_is_dead() -> None:
    """BG-03: waiting episodes get BRAIN_UNAVAILABLE."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, controller='static', static_episodes=1) as bench:
            await bench.open(robot='r1', lease_s=600.0)
            waits = asyncio.ensure_future(bench.open(robot='r2', max_wait_s=300.0))
            await loop.lives(1.0)
            await bench.servers[0].close()
            await loop.lives(2.0)
            assert waits.done()
            facts = await waits
            assert (facts['status'], facts['error']['code']) == (503, 'BRAIN_UNAVAILABLE')

    run_virtually(work)


def test_an_answer_that_breaks_off_is_seen_to_be_incomplete() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            await anext(aiter(stream))
            closing = asyncio.ensure_future(bench.servers[0].close())
            with pytest.raises((openai.APIError, openai.APIConnectionError)):
                async for _ in stream:
                    pass
            await closing
            assert (await bench.show('e1'))['turns'] == 0

    run_virtually(work)
