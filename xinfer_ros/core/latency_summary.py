# SPDX-License-Identifier: Apache-2.0
"""What is said of a set of latencies: three quantiles and the largest."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """
    Quantiles of a set of times [ms]; NaN for a set without any.

    :param count: times in the set
    """

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, times_ns: npt.NDArray[np.int64]) -> 'LatencySummary':
        """
        Return the summary of times, interpolated between neighbours as numpy does.

        :param times_ns: ``(n,)`` int64, in any order [ns]
        """
        if not len(times_ns):
            nan = float('nan')
            return cls(count=0, p50_ms=nan, p95_ms=nan, p99_ms=nan, max_ms=nan)
        p50, p95, p99, most = np.quantile(times_ns, (0.5, 0.95, 0.99, 1.0)) / 1e6
        return cls(
            count=len(times_ns),
            p50_ms=float(p50),
            p95_ms=float(p95),
            p99_ms=float(p99),
            max_ms=float(most),
        )
