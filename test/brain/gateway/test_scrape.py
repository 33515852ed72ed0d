# SPDX-License-Identifier: Apache-2.0
"""Metrics pages of LLM servers: old, new, missing names, and NaN."""

import pytest

from xinfer_ros.brain.controller import Gauges
from xinfer_ros.brain.gateway.scrape import read_metrics

NEW = """
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="brain"} 0.42
vllm:num_requests_running{engine="0",model_name="brain"} 3.0
vllm:num_requests_waiting{engine="0",model_name="brain"} 5.0
vllm:num_preemptions_total{engine="0",model_name="brain"} 2.0
vllm:generation_tokens_total{engine="0",model_name="brain"} 70.0
vllm:prompt_tokens_total{engine="0",model_name="brain"} 30.0
vllm:cache_config_info{block_size="128",num_gpu_blocks="400",kv_cache_size_tokens="51200"} 1.0
"""
GAUGES = Gauges(
    capacity_tokens=51200, block_tokens=128, usage=0.42, running=3, waiting=5, preemptions=2
)


def test_a_page_of_the_present_version_is_read() -> None:
    scrape = read_metrics(NEW)
    assert scrape is not None
    assert scrape.gauges == GAUGES
    assert scrape.steps == 100.0


def test_old_names_mean_the_same() -> None:
    old = NEW.replace('kv_cache_usage_perc', 'gpu_cache_usage_perc').replace(
        'preemptions_total', 'preemptions'
    )
    scrape = read_metrics(old.replace(',kv_cache_size_tokens="51200"', ''))
    assert scrape is not None
    assert scrape.gauges == GAUGES


def test_what_is_missing_or_no_number_is_not_known() -> None:
    scrape = read_metrics('vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running 1\n')
    assert scrape is not None
    assert scrape.gauges == Gauges(running=1)
    assert scrape.steps is None
    none = 'vllm:cache_config_info{block_size="None",num_gpu_blocks="None"} 1\n'
    scrape = read_metrics(none)
    assert scrape is not None
    assert scrape.gauges == Gauges()


def test_engines_of_one_server_are_added_up() -> None:
    second = NEW.replace('engine="0"', 'engine="1"').replace('0.42', '0.80')
    lines = [line for line in second.splitlines() if 'engine' in line]
    scrape = read_metrics(NEW + '\n'.join(lines) + '\n')
    assert scrape is not None
    assert (scrape.gauges.running, scrape.gauges.usage) == (6, 0.80)


@pytest.mark.parametrize('text', ['', '<html>no</html>', 'vllm:x{ 1', 'other_metric 1\n', '\0'])
def test_a_page_of_something_else_is_none(text: str) -> None:
    assert read_metrics(text) is None
