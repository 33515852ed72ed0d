# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics page of a vLLM server; names change between versions, values may be NaN."""

import math
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from xinfer_ros.brain.controller import Gauges

# Old and new names of the same thing, the first that is there counts: those of vLLM 0.32, and of
# its releases since 0.6.
_USAGE = ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')
_RUNNING = ('vllm:num_requests_running',)
_WAITING = ('vllm:num_requests_waiting',)
_PREEMPTIONS = ('vllm:num_preemptions_total', 'vllm:num_preemptions')
_QUERIES = ('vllm:prefix_cache_queries_total', 'vllm:gpu_prefix_cache_queries_total')
_HITS = ('vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_hits_total')
_CONFIG = 'vllm:cache_config_info'
_STEPS = (
    'vllm:iteration_tokens_total_count',
    'vllm:generation_tokens_total',
    'vllm:prompt_tokens_total',
    'vllm:prefix_cache_queries_total',
)
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """
    A metrics page.

    :param gauges: what a controller takes in
    :param steps: a number that rises while the engine works, None if the page has none
    """

    gauges: Gauges
    steps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    value: float
    labels: dict[str, str]


def read_metrics(text: str) -> Scrape | None:
    """
    Return what a metrics page says, None if it is none of an LLM server.

    Engines of one server are added up; of usage the largest counts.
    """
    samples: dict[str, list[_Sample]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith('vllm:') and math.isfinite(sample.value):
                    samples.setdefault(sample.name, []).append(
                        _Sample(value=sample.value, labels=sample.labels)
                    )
    except ValueError:
        return None
    if not samples:
        return None
    capacity, block = _cache(samples)
    usage = _values(samples, _USAGE)
    steps = [sample.value for name in _STEPS for sample in samples.get(name, ())]
    gauges = Gauges(
        capacity_tokens=capacity,
        block_tokens=block,
        usage=max(usage) if usage else None,
        running=_sum(samples, _RUNNING),
        waiting=_sum(samples, _WAITING),
        preemptions=_sum(samples, _PREEMPTIONS),
        prefix_queries=_sum(samples, _QUERIES),
        prefix_hits=_sum(samples, _HITS),
    )
    return Scrape(gauges=gauges, steps=sum(steps) if steps else None)


def _values(samples: dict[str, list[_Sample]], names: tuple[str, ...]) -> list[float]:
    for name in names:
        if name in samples:
            return [sample.value for sample in samples[name]]
    return []


def _sum(samples: dict[str, list[_Sample]], names: tuple[str, ...]) -> int | None:
    values = _values(samples, names)
    return round(sum(values)) if values else None


def _cache(samples: dict[str, list[_Sample]]) -> tuple[int | None, int | None]:
    """Return capacity and block size [tokens], from the labels of the configuration."""
    for sample in samples.get(_CONFIG, ()):
        labels = sample.labels
        block = _whole(labels.get('block_size'))
        blocks = _whole(labels.get('num_gpu_blocks')) or _whole(
            labels.get('num_gpu_blocks_override')
        )
        capacity = _whole(labels.get('kv_cache_size_tokens'))
        if capacity is None and block is not None and blocks is not None:
            capacity = block * blocks
        return capacity, block
    return None, None


def _whole(text: str | None) -> int | None:
    try:
        value = int(float(text or ''))
    except (ValueError, OverflowError):
        return None
    return value if value > 0 else None
