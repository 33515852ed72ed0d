# SPDX-License-Identifier: Apache-2.0
"""LLM servers that do not answer as vLLM does, or refuse."""

import asyncio
import gzip
import json
import socket
from typing import Any

import openai
import pytest
from aiohttp import web

from .bench import Bench
from .stub import Stub, event, passes, stream_of
from .virtual_time import VirtualLoop, run_virtually

ASK: dict[str, Any] = {'model': 'brain', 'messages': [{'role': 'user', 'content': 'go'}]}
USAGE = {'prompt_tokens': 30, 'completion_tokens': 2, 'total_tokens': 32}
WHOLE = {'id': 'x', 'choices': [], 'usage': USAGE}


async def _good(request: web.Request) -> web.Response:
    if request.path == '/v1/models':
        return web.json_response({'data': [{'id': 'other'}]})
    return web.json_response(WHOLE)


def _word(text: str) -> dict[str, Any]:
    return {'id': 'x', 'choices': [{'index': 0, 'delta': {'content': text}}]}


async def _status(bench: Bench) -> str:
    async with bench.http.get('/status.json') as answer:
        return str((await answer.json())['upstreams'][0]['state'])


async def _comes_back(stub: Stub, bench: Bench, loop: VirtualLoop) -> None:
    await stub.start()
    await loop.lives(5.0)
    assert await _status(bench) == 'UP'


async def _goes_down(stub: Stub, bench: Bench, loop: VirtualLoop) -> None:
    await stub.close()
    await loop.lives(2.0)
    assert await _status(bench) == 'DOWN'


def test_a_dead_server_behind_a_proxy_with_pages_for_people_is_found_again() -> None:
    """BG-03: a page that is no JSON must not end the probing."""

    async def lost(request: web.Request) -> web.Response:
        return web.Response(status=502, text='<html>Bad Gateway</html>', content_type='text/html')

    async def work(loop: VirtualLoop) -> None:
        stub = Stub(lost)
        async with Bench(loop, stubs=[stub]) as bench:
            await _goes_down(stub, bench, loop)
            await stub.start()
            await loop.lives(10.0)
            assert await _status(bench) == 'DOWN'
            stub.handler = _good
            await loop.lives(5.0)
            assert await _status(bench) == 'UP'

    run_virtually(work)


def test_probes_ask_for_no_model_that_only_an_agent_believes_in() -> None:
    async def knows_other(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == 'POST' else {'model': 'other'}
        if asked['model'] != 'other':
            return web.json_response({'error': {'message': 'no such model'}}, status=404)
        return await _good(request)

    async def work(loop: VirtualLoop) -> None:
        stub = Stub(knows_other)
        async with Bench(loop, stubs=[stub]) as bench:
            with pytest.raises(openai.NotFoundError, match='no such model'):
                await bench.agent('e1').chat.completions.create(**ASK)
            await _goes_down(stub, bench, loop)
            await _comes_back(stub, bench, loop)

    run_virtually(work)


def test_a_server_that_shuts_probes_out_is_up_when_it_answers() -> None:
    """Its key is known to agents alone: their calls have to tell whether it gets on."""

    async def with_key(request: web.Request) -> web.Response:
        if request.headers.get('Authorization') != 'Bearer key':
            return web.json_response({'error': 'Unauthorized'}, status=401)
        return await _good(request)

    async def work(loop: VirtualLoop) -> None:
        stub = Stub(with_key)
        async with Bench(loop, stubs=[stub]) as bench:
            await _goes_down(stub, bench, loop)
            await _comes_back(stub, bench, loop)
            await bench.agent('e1', api_key='key').chat.completions.create(**ASK)

    run_virtually(work)


def test_a_server_that_is_being_replaced_ends_its_answers_first() -> None:
    """It refuses connections, but its answers go on: no call is cut."""

    async def slow(request: web.Request) -> web.StreamResponse:
        if request.path != '/v1/chat/completions':
            return web.Response(status=404, headers={'Connection': 'close'})
        response = await stream_of(request)
        for number in range(20):
            await response.write(event(_word(str(number % 10))))
            await passes(0.5)
        return response

    async def work(loop: VirtualLoop) -> None:
        stub = Stub(slow)
        async with Bench(loop, stubs=[stub], metrics_period_s=60.0) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            text = asyncio.ensure_future(_text(stream))
            await loop.lives(4.5)
            await stub.take_no_more()
            for done in (False, True):
                with pytest.raises(openai.InternalServerError, match='does not accept'):
                    await bench.agent('e2').chat.completions.create(**ASK)
                assert await _status(bench) == ('DOWN' if done else 'UP')
                assert await text == '01234567890123456789'

    run_virtually(work)


async def _text(stream: openai.AsyncStream[Any]) -> str:
    return ''.join([chunk.choices[0].delta.content async for chunk in stream])


def test_a_machine_that_is_off_is_found_though_its_calls_come_one_by_one() -> None:
    """BG-03: nobody refuses the connection; the next call finds another server."""

    async def work(loop: VirtualLoop) -> None:
        full = socket.socket()
        full.bind(('127.0.0.1', 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(2)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())  # so that no further connection is made
        stub = Stub(_good)
        off = f'http://127.0.0.1:{full.getsockname()[1]}'
        async with Bench(loop, stubs=[stub], more_upstreams=(off,)) as bench:
            for episode in ('e1', 'e2', 'e3'):
                await bench.agent(episode, max_retries=2).chat.completions.create(**ASK)
            assert {(await bench.show(e))['upstream'] for e in ('e1', 'e2', 'e3')} == {stub.url}
        for one in (*waiting, full):
            one.close()

    run_virtually(work)


def test_an_address_may_end_with_a_slash() -> None:
    async def work(loop: VirtualLoop) -> None:
        stub = Stub(_good)
        await stub.start()
        async with Bench(loop, costs=(), more_upstreams=(stub.url + '/',)) as bench:
            await bench.agent('e1').chat.completions.create(**ASK)
            assert stub.requests[-1].path == '/v1/chat/completions'
        await stub.close()

    run_virtually(work)


def test_bytes_that_a_server_has_packed_reach_the_agent_as_they_are() -> None:
    """Some proxies pack what nobody wants packed; the length is that of the packed answer."""
    packed = gzip.compress(json.dumps(WHOLE).encode())

    async def packing(request: web.Request) -> web.Response:
        return web.Response(body=packed, headers={'Content-Encoding': 'gzip'})

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, stubs=[Stub(packing)]) as bench:
            answer = await bench.agent('e1').chat.completions.create(**ASK)
            assert answer.usage is not None
            assert answer.usage.prompt_tokens == 30

    run_virtually(work)


def test_an_answer_in_one_piece_to_a_call_for_a_stream_passes_and_is_counted() -> None:
    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, stubs=[Stub(_good)]) as bench:
            body = {**ASK, 'stream': True}
            async with bench.http.post('/e/e1/v1/chat/completions', json=body) as answer:
                assert await answer.json() == WHOLE
            assert (await bench.show('e1'))['prompt_tokens'] == 30

    run_virtually(work)


@pytest.mark.parametrize('end', [b'\n\n', b'\r\n\r\n'])
def test_events_pass_as_they_come_whatever_ends_their_lines(end: bytes) -> None:
    async def lined(request: web.Request) -> web.StreamResponse:
        response = await stream_of(request)
        for word in 'ab':
            await response.write(event(_word(word), end))
            await passes(3.0)
        await response.write(event(WHOLE, end) + b'data: [DONE]' + end)
        return response

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, stubs=[Stub(lined)]) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            began_s = loop.time()
            seen = [(c.choices[0].delta.content, loop.time() - began_s) async for c in stream]
            assert [(word, round(at_s)) for word, at_s in seen] == [('a', 0), ('b', 3)]
            assert (await bench.show('e1'))['prompt_tokens'] == 30

    run_virtually(work)


def test_an_answer_cut_in_the_middle_of_an_event_ends_without_another_one() -> None:
    """What would be appended to half an event could not be read."""

    async def cut(request: web.Request) -> web.StreamResponse:
        response = await stream_of(request)
        await response.write(event(_word('a')) + b'data: {"id": "x", "cho')
        await passes(1.0)
        assert request.transport is not None
        request.transport.abort()
        return response

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, stubs=[Stub(cut)], ask_usage=False) as bench:
            stream = await bench.agent('e1').chat.completions.create(**ASK, stream=True)
            with pytest.raises((openai.APIConnectionError, openai.APIError)):
                await _text(stream)

    run_virtually(work)


@pytest.mark.parametrize(('status', 'error'), [(400, openai.BadRequestError),
                                               (503, openai.InternalServerError)])  # fmt: skip
def test_a_refusal_of_the_server_passes_and_counts_for_nothing(
    status: int, error: type[Exception]
) -> None:
    """Too long a prompt, a full queue: nothing was computed, so no context has grown."""

    async def refusing(request: web.Request) -> web.Response:
        refusal = {'error': {'message': 'longer than 8192 tokens', 'code': status}}
        return web.json_response(refusal, status=status)

    async def work(loop: VirtualLoop) -> None:
        async with Bench(loop, stubs=[Stub(refusing)], controller='working_set') as bench:
            agent = bench.agent('e1')
            for stream in (True, False):
                with pytest.raises(error, match='longer than 8192 tokens'):
                    await agent.chat.completions.create(**ASK, stream=stream)
            facts = await bench.show('e1')
            assert (facts['turns'], facts['state']) == (0, 'ADMITTED')

    run_virtually(work)


def test_usage_of_the_messages_endpoint_is_read_and_its_errors_are_events_of_their_own() -> None:
    """As vLLM tells it: what is cached only at the end, apart from the rest of the prompt."""
    start = {'type': 'message_start', 'message': {'usage': {'input_tokens': 100}}}
    usage = {'input_tokens': 36, 'cache_read_input_tokens': 64, 'output_tokens': 7}
    delta = {'type': 'message_delta', 'usage': usage}

    async def telling(request: web.Request) -> web.StreamResponse:
        response = await stream_of(request)
        await response.write(b'event: message_start\n' + event(start))
        await response.write(b'event: message_delta\n' + event(delta))
        if len(stub.requests) > seen:
            await passes(1.0)
            assert request.transport is not None
            request.transport.abort()
        return response

    async def work(loop: VirtualLoop) -> None:
        nonlocal seen
        async with Bench(loop, stubs=[stub], metrics_period_s=60.0) as bench:
            seen = len(stub.requests) + 1
            body = {**ASK, 'stream': True}
            async with bench.http.post('/e/e1/v1/messages', json=body) as answer:
                assert (await answer.read()).endswith(event(delta))
            facts = await bench.show('e1')
            assert (facts['prompt_tokens'], facts['cached_tokens']) == (100, 64)
            async with bench.http.post('/e/e1/v1/messages', json=body) as answer:
                *_, last, rest = (await answer.read()).split(b'\n\n')
            name, data = last.split(b'\n')
            assert (name, rest) == (b'event: error', b'')
            error = json.loads(data.removeprefix(b'data: '))
            assert error['type'] == 'error'
            assert 'broke off' in error['error']['message']

    seen, stub = 0, Stub(telling)
    run_virtually(work)
