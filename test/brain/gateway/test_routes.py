# SPDX-License-Identifier: Apache-2.0
"""Opening, watching and ending episodes by HTTP."""

import asyncio
import json

import pytest

from .bench import Bench
from .virtual_time import VirtualLoop, run_virtually

ONE = {'controller': 'static', 'static_episodes': 1}


def test_an_episode_is_opened_watched_and_ended() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            facts = await bench.open(robot='r1', task='tidy up', priority=3, context_hint=5000)
            assert facts['status'] == 201
            assert facts['state'] == 'ADMITTED'
            assert facts['base_url'] == f'{bench.url}/e/{facts["episode"]}/v1'
            async with bench.http.get('/episodes') as answer:
                assert [e['task'] for e in await answer.json()] == ['tidy up']
            ended = await bench.end(facts['episode'])
            assert (ended['state'], ended['outcome']) == ('ENDED', 'ENDED')
            async with bench.http.delete(f'/episodes/{facts["episode"]}') as answer:
                assert answer.status == 404

    run_virtually(work)


def test_a_waiting_episode_is_admitted_within_100_ms_of_a_free_place() -> None:
    """BG-02: ending one admits the next at once."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE, lease_s=200.0) as bench:
            first = await bench.open(robot='r1')
            waits = asyncio.ensure_future(bench.open(robot='r2', max_wait_s=300.0))
            await loop.lives(100.0)
            assert not waits.done()
            freed_s = loop.time()
            await bench.end(first['episode'])
            assert (await waits)['state'] == 'ADMITTED'
            assert loop.time() - freed_s < 0.1

    run_virtually(work)


def test_a_robot_without_heartbeats_frees_its_place_when_its_lease_expires() -> None:
    """BG-02: within 100 ms, though nothing else happens."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE, lease_s=10.0) as bench:
            began_s = loop.time()
            first = await bench.open(robot='dead')
            waits = asyncio.ensure_future(bench.open(robot='r2', max_wait_s=300.0))
            await loop.lives(8.25)
            async with bench.http.post(f'/episodes/{first["episode"]}/heartbeat') as answer:
                assert (await answer.json())['lease_left_s'] == pytest.approx(10.0)
            assert (await waits)['state'] == 'ADMITTED'
            assert 18.25 <= loop.time() - began_s < 18.35

    run_virtually(work)


def test_who_does_not_want_to_wait_polls_long_or_listens_to_events() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            first = await bench.open(robot='r1', lease_s=600.0)
            facts = await bench.open(robot='r2', wait=False, lease_s=600.0)
            assert (facts['status'], facts['state'], facts['position']) == (202, 'QUEUED', 1)
            path = f'/episodes/{facts["episode"]}'
            events: list[str] = []
            listener = asyncio.ensure_future(_listen(bench, f'{path}/events', events))
            poll = asyncio.ensure_future(bench.http.get(f'{path}?after={facts["version"]}'))
            await loop.lives(5.0)
            assert not poll.done()
            await bench.end(first['episode'])
            assert (await (await poll).json())['state'] == 'ADMITTED'
            await bench.end(facts['episode'])
            await listener
            assert events == ['QUEUED', 'ADMITTED', 'ENDED']

    run_virtually(work)


async def _listen(bench: Bench, path: str, events: list[str]) -> None:
    async with bench.http.get(path) as answer:
        async for line in answer.content:
            if line.startswith(b'data: '):
                events.append(json.loads(line[6:])['state'])


def test_the_same_wish_again_is_the_same_episode() -> None:
    """So a retry after 429 keeps its place in line."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            await bench.open(robot='r0', lease_s=600.0)
            first = await bench.open(robot='r1', max_wait_s=1)
            assert first['status'] == 429
            episode = first['headers']['X-Session-ID']
            assert first['error']['episode'] == episode
            await bench.open(robot='r2', max_wait_s=1)
            again = await bench.open(robot='r1', episode=episode, wait=False)
            assert (again['episode'], again['position']) == (episode, 1)

    run_virtually(work)


@pytest.mark.parametrize(
    ('body', 'words'),
    [
        ('{"robots": "r"}', "unknown field 'robots'; known: robot"),
        ('{"priority": 300}', 'allowed: 0 to 255'),
        ('{"priority": true}', 'priority is True; allowed: int'),
        ('{"lease_s": 0}', 'allowed: float from 0.2 to 86400'),
        ('{"max_wait_s": NaN}', 'allowed: float from 0 to 86400'),
        ('{"robot": "a/b"}', 'allowed: 1 to 128 letters'),
        ('[1]', 'no JSON object'),
    ],
)
def test_a_wrong_wish_is_told_what_is_allowed(body: str, words: str) -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench, bench.http.post('/episodes', data=body) as answer:
            assert answer.status == 400
            assert words in (await answer.json())['error']['message']

    run_virtually(work)


@pytest.mark.parametrize('after', ['²', '9' * 5000, '-1', 'x', ''])
def test_any_version_but_the_present_one_is_answered_at_once(after: str) -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            await bench.open(robot='r1', episode='e1')
            began_s = loop.time()
            async with bench.http.get('/episodes/e1', params={'after': after}) as answer:
                assert answer.status == 200
            assert loop.time() - began_s < 1.0

    run_virtually(work)


def test_more_episodes_than_are_kept_are_asked_to_come_again() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, max_episodes=1) as bench:
            await bench.open(robot='r1')
            facts = await bench.open(robot='r2')
            assert (facts['status'], facts['headers']['Retry-After']) == (429, '5')
            assert 'as many as max_episodes allows' in facts['error']['message']

    run_virtually(work)


def test_status_and_metrics_tell_what_is_there() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, **ONE) as bench:
            await bench.open(robot='r1', lease_s=600.0)
            await bench.open(robot='r2', wait=False)
            async with bench.http.get('/status.json') as answer:
                status = await answer.json()
            assert [e['state'] for e in status['episodes']] == ['ADMITTED', 'QUEUED']
            assert status['upstreams'][0]['controller'] == 'static'
            async with bench.http.get('/metrics') as answer:
                text = await answer.text()
            assert 'xinfer_brain_episodes{state="QUEUED"} 1.0' in text
            assert f'xinfer_brain_up{{upstream="{bench.servers[0].url}"}} 1.0' in text
            await loop.lives(61.0)
            async with bench.http.get('/metrics') as answer:
                text = await answer.text()
            assert 'xinfer_brain_episodes_over_total{outcome="LEASE_EXPIRED"} 1.0' in text

    run_virtually(work)
