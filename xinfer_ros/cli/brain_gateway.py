# SPDX-License-Identifier: Apache-2.0
"""The commands ``xinfer brain gateway`` and ``xinfer brain scripted``."""

import argparse
import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, number, whole_number
from xinfer_ros.config import BrainConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import changes, settings_from

TOKENS, BLOCK = 51_200, 128


def add_gateway(actions: Commands) -> None:
    """Add ``gateway``."""
    parser = actions.add_parser(
        'gateway',
        help='admit episodes before LLM servers, without ROS',
        description=(
            'Listens for agents, and passes the calls of admitted episodes on to LLM servers\n'
            'with the OpenAI interface. The brain node is the same with ROS actions.\n'
            'Agents take http://HOST:PORT/e/EPISODE/v1 as OPENAI_BASE_URL.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer brain gateway --upstream http://127.0.0.1:8000\n'
            '  xinfer brain gateway --set controller=static --set static_episodes=16\n'
            '  xinfer brain gateway --set controller_settings=start_share=0.5,admit_share=0.8\n'
            '  xinfer settings brain                      # every setting'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--upstream', action='append', default=[], metavar='URL',
        help='an LLM server, without /v1; several times for several',
    )  # fmt: skip
    parser.add_argument(
        '--port', type=whole_number(0, 65535), default=BrainConfig().port, help='0: any free one'
    )
    parser.add_argument(
        '--set', action='append', default=[], metavar='KEY=VALUE', dest='pairs',
        help='any other setting; lists with commas',
    )  # fmt: skip
    parser.set_defaults(run=_gateway)


def add_scripted(actions: Commands) -> None:
    """Add ``scripted``."""
    parser = actions.add_parser(
        'scripted',
        help='an LLM server without a model, to try agents and the gateway',
        description=(
            'Serves the OpenAI interface on 127.0.0.1. It has no model: its answers are made-up\n'
            'words. But its prefix cache is a true one, and it takes its time for what is not\n'
            'cached, so a fleet that is too large makes it thrash.'
        ),
        epilog='examples:\n  xinfer brain scripted --port 8000\n  xinfer brain scripted --slow 10',
        formatter_class=ExampleFormatter,
    )
    parser.add_argument(
        '--port', type=whole_number(0, 65535), default=8000, help='0: any free one'
    )
    parser.add_argument(
        '--cache', type=whole_number(BLOCK, 2**30), default=TOKENS, metavar='TOKENS',
        help='size of the prefix cache',
    )  # fmt: skip
    parser.add_argument(
        '--slow', type=number(0.01, 1000.0), default=1.0, metavar='FACTOR',
        help='how many times longer everything takes',
    )  # fmt: skip
    parser.set_defaults(run=_scripted)


def _gateway(arguments: argparse.Namespace) -> int:
    from xinfer_ros.brain.gateway.choice import make_controller
    from xinfer_ros.brain.gateway.gateway import Gateway
    from xinfer_ros.core.clock import MonotonicClock

    given: dict[str, object] = dict(changes(BrainConfig, arguments.pairs, 'the gateway'))
    given['port'] = arguments.port
    if arguments.upstream:
        given['upstreams'] = tuple(arguments.upstream)
    config = settings_from(BrainConfig, given, dict.fromkeys(given, 'command line'))

    async def serve() -> int:
        failed = asyncio.Event()
        gateway = Gateway(config, MonotonicClock(), lambda: make_controller(config), failed.set)
        await gateway.start()
        print(f'agents: OPENAI_BASE_URL={gateway.routes.base_url("EPISODE")}', flush=True)
        print(f'episodes, state: {gateway.routes.base}/status.json; Ctrl-C ends', flush=True)
        try:
            await failed.wait()
        finally:
            await gateway.close()
        return 1

    return _run(serve())


def _scripted(arguments: argparse.Namespace) -> int:
    from xinfer_ros.brain.scripted_engine import ScriptedCosts
    from xinfer_ros.brain.scripted_server import ScriptedServer

    usual, slow = ScriptedCosts(), arguments.slow
    costs = ScriptedCosts(
        blocks=arguments.cache // BLOCK,
        block_tokens=BLOCK,
        step_s=slow * usual.step_s,
        prefill_s=slow * usual.prefill_s,
    )

    async def serve() -> int:
        server = ScriptedServer(costs)
        try:
            await server.start(arguments.port)
        except OSError as error:
            await server.close()
            raise ConfigError(
                f'can not listen on port {arguments.port}: {error.strerror}'
            ) from None
        print(f'an LLM without a model: {server.url}/v1; Ctrl-C ends', flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            await server.close()
        return 0

    return _run(serve())


def _run(work: Coroutine[Any, Any, int]) -> int:
    with contextlib.suppress(KeyboardInterrupt):  # the usual end
        return asyncio.run(work)
    return 0
