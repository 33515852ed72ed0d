# SPDX-License-Identifier: Apache-2.0
"""Calls of agents through the gateway, with the OpenAI package."""

import asyncio
import itertools
from typing import Any

import openai
import pytest

from xinfer_ros.brain.gateway.reply import STATUS
from xinfer_ros.brain.scripted_engine import ScriptedCosts
from xinfer_ros.errors import Reason

from .bench import Bench
from .virtual_time import VirtualLoop, run_virtually

SAID: Any = [{'role': 'user', 'content': 'pick up the cube'}]
ASK: dict[str, Any] = {'model': 'brain', 'messages': SAID, 'max_tokens': 4}


def test_chat_completions_and_responses_answer_as_without_a_gateway() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            agent = bench.agent('e1')
            direct = openai.AsyncOpenAI(base_url=f'{bench.servers[0].url}/v1', api_key='none')
            for one in (agent, direct):
                chat = await one.chat.completions.create(**ASK)
                assert chat.usage is not None
                assert chat.usage.completion_tokens == 4
                text = await one.completions.create(model='brain', prompt='go', max_tokens=3)
                assert len(text.choices[0].text) == 12
                answer = await one.responses.create(model='brain', input='go', max_output_tokens=2)
                assert len(answer.output_text) == 8
            assert [m.id for m in (await agent.models.list()).data] == ['brain']
            facts = await bench.show('e1')
            assert (facts['turns'], facts['output_tokens']) == (3, 9)
            await direct.close()

    run_virtually(work)


@pytest.mark.parametrize('asks_usage', [True, False])
def test_a_stream_passes_byte_for_byte_and_its_usage_is_seen_by_those_who_ask(
    asks_usage: bool,
) -> None:
    """The gateway reads usage all the same."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            options = {'stream_options': {'include_usage': True}} if asks_usage else {}
            body = {**ASK, 'stream': True, **options}
            got = []
            for base in (bench.url + '/e/e1', bench.servers[0].url):
                async with bench.http.post(f'{base}/v1/chat/completions', json=body) as answer:
                    text = await answer.read()
                    head, _, rest = text.partition(b'"id":"')
                    got.append((answer.status, answer.headers['Content-Type'], head, len(rest)))
                    assert text.count(b'"usage"') == asks_usage
                    assert text.endswith(b'data: [DONE]\n\n')
            assert got[0] == got[1]
            assert (await bench.show('e1'))['output_tokens'] == 4

    run_virtually(work)


def test_tokens_of_a_stream_come_one_by_one() -> None:
    async def work(loop: VirtualLoop) -> list[float]:
        async with Bench(loop) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            return [loop.time() async for chunk in stream if chunk.choices[0].delta.content]

    times = run_virtually(work)
    gaps = [round(later - earlier, 4) for earlier, later in itertools.pairwise(times)]
    assert gaps == [0.002] * 3


def test_ids_pass_in_both_directions() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            headers = {'X-Request-Id': 'r-7', 'X-Session-ID': 'e9', 'X-Robot-ID': 'arm'}
            async with bench.http.post('/v1/chat/completions', json=ASK, headers=headers) as got:
                assert got.headers['X-Request-Id'] == 'r-7'
                assert got.headers['X-Session-ID'] == 'e9'
            seen = bench.servers[0].requests[0]['headers']
            assert (seen['X-Request-Id'], seen['X-Session-ID']) == ('r-7', 'e9')
            assert 'X-Robot-ID' not in seen
            assert (await bench.show('e9'))['robot'] == 'arm'
            body = {**ASK, 'session_id': 'e10'}
            async with bench.http.post('/v1/chat/completions', json=body) as got:
                assert got.status == 200
                assert got.headers['X-Request-Id']
            assert (await bench.show('e10'))['turns'] == 1

    run_virtually(work)


def test_refusals_say_what_is_wrong_and_show_no_traceback() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, max_request_mib=0.01, implicit_episodes=False) as bench:
            for path, body, status, words in (
                ('/v1/chat/completions', b'{}', 400, 'names no episode'),
                ('/e/e1/v1/chat/completions', b'nonsense', 400, 'no JSON object'),
                ('/e/e1/v1/chat/completions', b'{}', 404, 'open it by POST /episodes'),
                ('/e/e1/v1/load_lora_adapter', b'{}', 404, 'is not served here'),
                ('/e/e1/v1/chat/completions', b'x' * 20_000, 413, 'max_request_mib'),
                ('/secret', b'', 404, 'Not Found'),
            ):
                async with bench.http.post(path, data=body) as answer:
                    facts = await answer.json()
                    assert (answer.status, words in facts['error']['message']) == (status, True)
                    assert 'Traceback' not in str(facts)
                    assert answer.headers['Server'] == 'xinfer'

    run_virtually(work)


def test_an_error_of_the_llm_server_reaches_the_agent() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            body = b'{"messages": 3}'
            async with bench.http.post('/e/e1/v1/chat/completions', data=body) as answer:
                assert answer.status == 400
                assert 'no JSON of a call' in await answer.text()
            assert (await bench.show('e1'))['turns'] == 0

    run_virtually(work)


def test_an_episode_without_a_place_is_held_and_then_told_its_position() -> None:
    """429 with Retry-After and position; the place in line is kept for the next try."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, controller='static', static_episodes=1, max_wait_s=7.0) as bench:
            await bench.agent('first').chat.completions.create(**ASK)
            began_s = loop.time()
            with pytest.raises(openai.RateLimitError, match='number 1 in line') as refusal:
                await bench.agent('second').chat.completions.create(**ASK)
            assert loop.time() - began_s == pytest.approx(7.0, abs=0.1)
            headers = refusal.value.response.headers
            assert headers['X-Queue-Position'] == '1'
            assert int(headers['Retry-After']) >= 1
            waits = asyncio.ensure_future(bench.agent('second').chat.completions.create(**ASK))
            await loop.lives(2.0)
            await bench.end('first')
            assert (await waits).usage is not None

    run_virtually(work)


@pytest.mark.parametrize('stream', [True, False])
def test_a_parked_turn_waits_with_signs_of_life_and_is_never_refused(stream: bool) -> None:
    """The OpenAI package takes comments and blanks for nothing."""

    async def work(loop: VirtualLoop) -> None:
        async with Bench(
            loop, controller='static', static_episodes=1, heartbeat_after_s=3.0, heartbeat_s=1.0,
            max_wait_s=5.0, costs=(ScriptedCosts(), ScriptedCosts()),
        ) as bench:  # fmt: skip
            parked, other = await _parked_episode(bench)
            began_s = loop.time()
            call = asyncio.ensure_future(_text(bench.agent(parked, timeout=2.0 + 1.5), stream))
            await loop.lives(60.0)
            assert not call.done()
            assert (await bench.show(parked))['state'] == 'PARKED'
            await bench.end(other)
            assert len(await call) == 16
            assert loop.time() - began_s < 61.0
            assert (await bench.show(parked))['parked_s'] >= 60.0

    run_virtually(work)


async def _parked_episode(bench: Bench) -> tuple[str, str]:
    """Return an episode that is parked since its server died, and who has the other server."""
    await bench.agent('a').chat.completions.create(**ASK)
    await bench.agent('b').chat.completions.create(**ASK)
    await bench.servers[0].close()
    while (await bench.show('a'))['state'] != 'PARKED':
        await bench.loop.lives(0.5)
    return 'a', 'b'


async def _text(agent: openai.AsyncOpenAI, stream: bool) -> str:
    if not stream:
        answer = await agent.chat.completions.create(**ASK)
        return answer.choices[0].message.content or ''
    chunks = await agent.chat.completions.create(**ASK, stream=True)
    return ''.join([chunk.choices[0].delta.content or '' async for chunk in chunks])


def test_an_agent_that_hangs_up_frees_the_llm_server() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop) as bench:
            stream = await bench.agent('e1').chat.completions.create(
                **{**ASK, 'max_tokens': 4000}, stream=True
            )
            await anext(aiter(stream))
            assert bench.servers[0].engine.running == 1
            await stream.close()
            await loop.lives(0.5)
            assert bench.servers[0].engine.running == 0
            assert bench.gateway.admission.get('e1').running == 0

    run_virtually(work)


def test_a_token_is_asked_for_and_not_passed_on(tmp_path: Any) -> None:
    (tmp_path / 'token').write_text('secret-1\n')

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, token_file=str(tmp_path / 'token')) as bench:
            with pytest.raises(openai.AuthenticationError, match='token of the gateway'):
                await bench.agent('e1').chat.completions.create(**ASK)
            agent = bench.agent('e1', api_key='secret-1')
            await agent.chat.completions.create(**ASK)
            assert 'Authorization' not in bench.servers[0].requests[0]['headers']
            async with bench.http.get('/status.json') as answer:
                assert answer.status == 401
            async with bench.http.get('/health') as answer:
                assert answer.status == 200

    run_virtually(work)


def test_every_reason_of_the_brain_tier_has_its_status() -> None:
    assert STATUS[Reason.NOT_ADMITTED] == 429
    assert STATUS[Reason.BRAIN_UNAVAILABLE] == 503
