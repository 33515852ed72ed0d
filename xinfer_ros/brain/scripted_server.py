# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible server of a scripted LLM, to try agents and gateways without a GPU."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from xinfer_ros.brain.scripted_answers import (
    MODEL,
    ChatShape,
    Facts,
    ResponseShape,
    Shape,
    TextShape,
)
from xinfer_ros.brain.scripted_engine import (
    TOKEN_CHARACTERS,
    ScriptedCosts,
    ScriptedEngine,
    tokens_of,
)

MOST_BYTES = 64 << 20
DEFAULT_LENGTH, MOST_LENGTH = 16, 4096  # of an answer [tokens]


def _padded(text: str) -> str:
    return text + ' ' * (-len(text.encode('utf-8', 'replace')) % TOKEN_CHARACTERS)


def _written(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, sort_keys=True)


def prompt_of(body: Facts) -> list[int]:
    """Return the tokens of a call's prompt; what is appended changes nothing before it."""
    if 'prompt' in body:
        return tokens_of(_written(body['prompt']))
    parts = [_padded(_written(body[key])) for key in ('tools', 'instructions') if body.get(key)]
    messages: Any = body.get('messages', body.get('input', []))
    if isinstance(messages, str):
        messages = [{'role': 'user', 'content': messages}]
    for message in messages:
        parts.append(_padded(f'<{message.get("role", "")}>'))
        parts.append(_padded(_written(message.get('content') or '')))
    return tokens_of(''.join([*parts, _padded('<assistant>')]))


class ScriptedServer:
    """
    Serves ``/v1/chat/completions``, ``/v1/completions``, ``/v1/responses``, ``/v1/models``,
    ``/health`` and ``/metrics``, the last in the names of vLLM.

    :param costs: of the LLM
    :param has_metrics: whether there is a metrics page
    """

    def __init__(self, costs: ScriptedCosts, *, has_metrics: bool = True) -> None:
        self.engine = ScriptedEngine(costs)
        self._has_metrics = has_metrics
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.Task[None] | None = None
        self.requests: list[Facts] = []  # headers and body of each call
        self.port = 0

    @property
    def url(self) -> str:
        """Return its address."""
        return f'http://127.0.0.1:{self.port}'

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1, on any free port if it is 0."""
        application = web.Application(client_max_size=MOST_BYTES)
        for path, shape in (
            ('/v1/chat/completions', ChatShape),
            ('/v1/completions', TextShape),
            ('/v1/responses', ResponseShape),
        ):
            application.router.add_post(path, self._handler(shape))
        application.router.add_get('/v1/models', self._models)
        application.router.add_get('/health', self._health)
        if self._has_metrics:
            application.router.add_get('/metrics', self._metrics)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, '127.0.0.1', port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._loop = asyncio.ensure_future(self.engine.run())

    async def close(self) -> None:
        """Stop, whatever is under way."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({'object': 'list', 'data': [{'id': MODEL, 'object': 'model'}]})

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        costs, counters, cache = self.engine.costs, self.engine.counters, self.engine.cache
        size = costs.blocks * costs.block_tokens
        values = {
            f'cache_config_info{{block_size="{costs.block_tokens}",num_gpu_blocks='
            f'"{costs.blocks}",kv_cache_size_tokens="{size}"}}': 1,
            'kv_cache_usage_perc': cache.used_blocks / costs.blocks,
            'num_requests_running': self.engine.running,
            'num_requests_waiting': self.engine.waiting,
            'num_preemptions_total': 0,
            'iteration_tokens_total_count': counters.steps,
            'prompt_tokens_total': counters.prompt_tokens,
            'generation_tokens_total': counters.generation_tokens,
            'prefix_cache_queries_total': counters.queries,
            'prefix_cache_hits_total': counters.hits,
        }
        return web.Response(text=''.join(f'vllm:{k} {v}\n' for k, v in values.items()))

    def _handler(self, kind: type[Shape]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._answer(request, kind)

        return handle

    async def _answer(self, request: web.Request, kind: type[Shape]) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
            prompt = prompt_of(body)
        except (ValueError, AttributeError, TypeError):
            return web.json_response({'error': {'message': 'no JSON of a call'}}, status=400)
        self.requests.append({'headers': request.headers, 'body': body})
        length = next(
            (body[k] for k in ('max_tokens', 'max_completion_tokens', 'max_output_tokens')
             if isinstance(body.get(k), int)), DEFAULT_LENGTH,
        )  # fmt: skip
        scripted = self.engine.submit(prompt, max(min(length, MOST_LENGTH), 1))
        shape = kind(scripted, body)
        headers = {'X-Request-Id': request.headers.get('X-Request-Id', shape.id)}
        if not body.get('stream'):
            async for _ in self.engine.read(scripted):
                pass
            return web.json_response(shape.whole(), headers=headers)
        response = web.StreamResponse(headers={**headers, 'Content-Type': 'text/event-stream'})
        await response.prepare(request)
        async for token in self.engine.read(scripted):
            await response.write(shape.event(token))
        await response.write(shape.end())
        await response.write_eof()
        return response
