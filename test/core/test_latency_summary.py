# SPDX-License-Identifier: Apache-2.0
"""What is said of a set of latencies."""

import math

import numpy as np

from xinfer_ros.core.latency_summary import LatencySummary


def test_quantiles_are_in_milliseconds() -> None:
    found = LatencySummary.of(np.arange(1, 102) * 1_000_000)
    assert (found.count, found.p50_ms, found.p95_ms, found.p99_ms) == (101, 51.0, 96.0, 100.0)
    assert found.max_ms == 101.0


def test_empty_set_has_no_quantiles() -> None:
    found = LatencySummary.of(np.zeros(0, np.int64))
    assert found.count == 0
    assert math.isnan(found.p50_ms)
