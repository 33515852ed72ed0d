# SPDX-License-Identifier: Apache-2.0
"""A call that is given up, or whose episode ends, at each stage of its life."""

import asyncio
import gzip
import json
from typing import Any

import openai
import pytest

from xinfer_ros.brain.gateway.episode import Outcome

from .bench import Bench
from .virtual_time import VirtualLoop, run_virtually

ASK: dict[str, Any] = {'model': 'brain', 'messages': [{'role': 'user', 'content': 'go'}]}
LONG = {**ASK, 'max_tokens': 200}
ONE: dict[str, Any] = {'controller': 'static', 'static_episodes': 1, 'max_wait_s': 600.0}
TURN = '/v1/chat/completions'


async def _hang_up(call: 'asyncio.Future[Any]') -> None:
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


def test_an_agent_that_hangs_up_in_the_queue_leaves_no_call_behind() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE, idle_lease_s=20.0) as bench:
            await bench.open(robot='r1', lease_s=600.0)
            call = asyncio.ensure_future(bench.agent('e2').chat.completions.create(**ASK))
            await loop.lives(60.0)
            assert (await bench.show('e2'))['state'] == 'QUEUED'
            await _hang_up(call)
            await loop.lives(19.0)
            assert (await bench.show('e2'))['lease_left_s'] == pytest.approx(1.0, abs=0.1)
            await loop.lives(2.0)
            assert [e['robot'] for e in bench.gateway.pages.status()['episodes']] == ['r1']
            assert len(bench.servers[0].requests) == 0

    run_virtually(work)


def test_who_hangs_up_while_it_opens_an_episode_loses_it_with_its_lease() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            await bench.open(robot='r1', lease_s=600.0)
            wish = asyncio.ensure_future(bench.open(robot='r2', lease_s=5.0))
            await loop.lives(30.0)
            await _hang_up(wish)
            await loop.lives(6.0)
            assert bench.gateway.pages.status()['over']['LEASE_EXPIRED'] == 1

    run_virtually(work)


def test_the_end_of_an_episode_refuses_its_waiting_call_and_lets_a_running_one_end() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            running = asyncio.ensure_future(bench.agent('e1').chat.completions.create(**LONG))
            await loop.lives(0.1)
            waiting = asyncio.ensure_future(bench.agent('e2').chat.completions.create(**ASK))
            await loop.lives(0.1)
            assert (await bench.end('e2'))['state'] == 'ENDED'
            with pytest.raises(openai.NotFoundError, match='episode e2 has ended'):
                await waiting
            assert (await bench.end('e1'))['state'] == 'DRAINING'
            assert (await bench.end('e1'))['state'] == 'DRAINING'
            with pytest.raises(openai.NotFoundError, match='is ending'):
                await bench.agent('e1').chat.completions.create(**ASK)
            assert (await running).usage is not None
            assert bench.gateway.pages.status()['over']['ENDED'] == 2

    run_virtually(work)


def test_an_episode_may_end_in_any_moment_in_which_its_call_is_let_through() -> None:
    """Between its admission and its turn other things happen; none breaks the gateway."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            statuses = set()
            for rounds in range(40):
                admission = bench.gateway.admission
                first, second = f'a{rounds}', f'b{rounds}'
                await bench.open(robot='r1', episode=first)
                call = asyncio.ensure_future(_status(bench, second))
                await loop.lives(1.0)
                admission.end(admission.get(first), Outcome.ENDED, loop.now_ns())
                await loop.goes_round(rounds)
                if (episode := admission.find(second)) is not None:
                    admission.end(episode, Outcome.ENDED, loop.now_ns())
                statuses.add(await call)
            assert statuses == {200, 404}

    run_virtually(work)


async def _status(bench: Bench, episode: str) -> int:
    async with bench.http.post(f'/e/{episode}{TURN}', json={**ASK, 'max_tokens': 1}) as answer:
        await answer.read()
        return answer.status


def test_a_small_call_beside_a_large_one_does_not_hide_its_context() -> None:
    """Agents let a second call find a title, say."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            said = {**LONG, 'messages': [{'role': 'user', 'content': 'word ' * 2000}]}
            large = asyncio.ensure_future(bench.agent('e1').chat.completions.create(**said))
            small = asyncio.ensure_future(
                bench.agent('e1').chat.completions.create(**{**ASK, 'max_tokens': 300})
            )
            usage = (await large).usage
            assert usage is not None
            await small
            held = bench.gateway.pages.status()['upstreams'][0]['held_tokens']
            assert held >= usage.prompt_tokens

    run_virtually(work)


def test_a_body_that_is_not_packed_as_it_says_is_refused() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            headers = {'Content-Encoding': 'gzip'}
            async with bench.http.post(f'/e/e1{TURN}', data=b'abcde', headers=headers) as answer:
                assert answer.status == 400
                assert 'can not be read' in (await answer.json())['error']['message']

    run_virtually(work)


def test_a_packed_body_is_unpacked_before_it_is_passed_on() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            packed = gzip.compress(json.dumps(ASK).encode())
            headers = {'Content-Encoding': 'gzip', 'Content-Type': 'application/json'}
            async with bench.http.post(f'/e/e1{TURN}', data=packed, headers=headers) as answer:
                assert answer.status == 200
            assert 'Content-Encoding' not in bench.servers[0].requests[0]['headers']

    run_virtually(work)
