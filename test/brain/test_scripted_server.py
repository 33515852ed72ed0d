# SPDX-License-Identifier: Apache-2.0
"""The scripted LLM: a true prefix cache, honest times."""

import asyncio
from typing import Any

import pytest

from xinfer_ros.brain.scripted_engine import ScriptedCosts, ScriptedEngine, answer_to, tokens_of
from xinfer_ros.brain.scripted_server import prompt_of

from .gateway.virtual_time import VirtualLoop, run_virtually

COSTS = ScriptedCosts(blocks=100, block_tokens=16, step_s=0.01, prefill_s=0.001, step_tokens=400)


def _run(*prompts: list[int], costs: ScriptedCosts = COSTS) -> list[tuple[int, float]]:
    """Return the cached tokens and the time of each prompt, one after the other."""

    async def work(loop: VirtualLoop) -> list[tuple[int, float]]:
        engine = ScriptedEngine(costs)
        running = asyncio.ensure_future(engine.run())
        found = []
        for prompt in prompts:
            began_s = loop.time()
            request = engine.submit(prompt, 5)
            async for _ in engine.read(request):
                pass
            found.append((request.cached, round(loop.time() - began_s, 4)))
        running.cancel()
        return found

    return run_virtually(work)


def test_a_prompt_is_computed_once_and_its_prefix_is_found_again() -> None:
    first, second = _run([*range(320)], [*range(320), *range(9000, 9016)])
    assert first == (0, 0.32 + 5 * 0.01)
    assert second == (320, 0.016 + 5 * 0.01)


def test_the_answer_is_part_of_the_context_that_is_cached() -> None:
    prompt = [*range(43)]
    longer = [*prompt, *answer_to(prompt, 5), *range(500, 532)]
    assert [cached for cached, _ in _run(prompt, longer)] == [0, 48]


def test_what_was_used_least_recently_is_evicted_its_end_first() -> None:
    """Of 100 blocks the second context takes 63, so 37 of the first are left."""
    one, other = [*range(1000)], [*range(5000, 6000)]
    assert [cached for cached, _ in _run(one, other, one)] == [0, 0, 37 * 16]


def test_a_long_prompt_takes_several_steps() -> None:
    ((_, seconds),) = _run([*range(1000)])
    assert seconds == 1.0 + (2 + 5) * 0.01


def test_a_prompt_that_never_fits_is_answered_with_nothing() -> None:
    ((cached, _),) = _run([*range(5000)])
    assert cached == 0


@pytest.mark.parametrize('key', ['messages', 'input'])
def test_a_turn_more_keeps_the_tokens_before_it(key: str) -> None:
    said: list[Any] = [
        {'role': 'system', 'content': 'rules'},
        {'role': 'user', 'content': 'go on'},
    ]
    before = prompt_of({key: said})
    answer = ''.join(t.to_bytes(4, 'big').decode() for t in answer_to(before, 3))
    after = prompt_of({key: [*said, {'role': 'assistant', 'content': answer}, said[1]]})
    assert after[: len(before) + 3] == before + answer_to(before, 3)


def test_text_has_a_token_for_four_bytes() -> None:
    assert len(tokens_of('a' * 41)) == 11
    assert prompt_of({'prompt': 'abcd'}) == tokens_of('abcd')
