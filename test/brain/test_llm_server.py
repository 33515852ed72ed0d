# SPDX-License-Identifier: Apache-2.0
"""The simulated LLM server costs what the published one does."""

import pytest

from xinfer_ros.brain.llm_server import Call, LlmServer, ServerModel

FAR_NS = 10**15


def finish(server: LlmServer, call: Call, now_ns: int = 0) -> int:
    """Serve a call alone; return when it has ended."""
    server.submit(call)
    while True:
        end = server.step(now_ns, FAR_NS)
        assert end is not None
        now_ns = end.at_ns
        if call in end.done:
            return now_ns


@pytest.mark.parametrize(('tokens', 'seconds'), [(40_000, 1.34), (215_000, 10.26)])
def test_first_token_of_a_cold_prompt_takes_as_long_as_published(
    tokens: int, seconds: float
) -> None:
    server = LlmServer(ServerModel(shared_tokens=0))
    call = Call('a', tokens, 1)
    finish(server, call)
    assert call.first_token_ns / 1e9 == pytest.approx(seconds, rel=0.02)


def test_first_token_of_a_warm_prompt_takes_a_fraction() -> None:
    """Published: 0.18 to 0.35 s."""
    server = LlmServer(ServerModel())
    now_ns = finish(server, Call('a', 100_000, 144))
    call = Call('a', 105_000, 1)
    end_ns = finish(server, call, now_ns)
    assert call.hit
    assert 0.15 < (end_ns - now_ns) / 1e9 < 0.35


def test_decode_takes_as_long_as_published_a_token() -> None:
    """Published: 8.9 to 10.7 ms."""
    server = LlmServer(ServerModel())
    call = Call('a', 80_000, 101)
    end_ns = finish(server, call)
    assert 8.5 < (end_ns - call.first_token_ns) / 1e6 / 100 < 10.7


def test_run_of_equal_steps_ends_when_the_next_event_comes() -> None:
    server = LlmServer(ServerModel())
    server.submit(Call('a', 20_000, 1000))
    first = server.step(0, FAR_NS)
    assert first is not None
    end = server.step(first.at_ns, first.at_ns + 50_000_000)
    assert end is not None
    assert 50e6 <= end.at_ns - first.at_ns < 60e6


def test_steps_cost_the_same_one_by_one_and_in_a_run() -> None:
    together, single = LlmServer(ServerModel()), LlmServer(ServerModel())
    end_ns = finish(together, Call('a', 20_000, 200))
    call = Call('a', 20_000, 200)
    single.submit(call)
    now_ns, done = 0, False
    while not done:
        end = single.step(now_ns, now_ns + 1)
        assert end is not None
        now_ns, done = end.at_ns, call in end.done
    assert now_ns == pytest.approx(end_ns, abs=1000)


def test_counters_tell_of_a_lost_context_before_its_call_ends() -> None:
    server = LlmServer(ServerModel())
    now_ns = finish(server, Call('a', 100_000, 10))
    server.resize(0.01)
    server.resize(1.0)
    server.submit(Call('a', 101_000, 10))
    server.step(now_ns, FAR_NS)
    assert server.prefix_queries == 201_000
    assert server.prefix_hits < 40_000


def test_idle_server_has_nothing_to_do() -> None:
    assert LlmServer(ServerModel()).step(0, FAR_NS) is None
