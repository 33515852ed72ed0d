# SPDX-License-Identifier: Apache-2.0
"""What one system came to with one fleet: a flat record, made of the log of its requests."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.latency_summary import LatencySummary
from xinfer_ros.errors import Reason
from xinfer_ros.robot.request_log import Column, RequestLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    The span of a run that counts, monotonic clock.

    :param from_ns: end of the warm-up [ns]
    :param to_ns: end of the run [ns]
    """

    from_ns: int
    to_ns: int

    @property
    def seconds(self) -> float:
        """Return its length [s]."""
        return (self.to_ns - self.from_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCpu:
    """
    CPU time of all processes of a server over a window.

    :param total_s: without decoding pictures [s]
    :param decode_s: of the threads that decode pictures, None if none are told apart [s]
    """

    total_s: float
    decode_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRecord:
    """
    One system with one fleet; latency is from the observation sent to the answer received.

    :param system: ours, openpi, floor, ...
    :param x_ms: model time of each request, None if the model takes the time that it takes [ms]
    :param rps: answers with rows per second, of requests sent in the window [1/s]
    :param server_cpu_ms_per_request: over all processes of the server, decoding apart; None for
        a server on another machine [ms]
    :param decode_cpu_ms_per_request: of decoding, None where nothing is told apart [ms]
    :param wrong: answers that were not the asker's, over the whole run
    :param unanswered: requests without any answer
    :param refused: requests answered with a reason instead of rows
    :param reasons: which, and how often each, as ``EXPIRED 3, HUNG 1``
    :param attainment: share of the answers with rows within their budget
    :param goodput_hz: such answers per second [1/s]
    :param lateness_p99_ms: of the load generator: sent less due [ms]
    :param loop_lag_p99_ms: of the loops that send, whoever was due [ms]
    """

    system: str
    robots: int
    x_ms: float | None
    rps: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    server_cpu_ms_per_request: float | None
    wrong: int
    unanswered: int
    decode_cpu_ms_per_request: float | None
    refused: int
    attainment: float
    goodput_hz: float
    requests: int
    lateness_p99_ms: float
    lateness_max_ms: float
    loop_lag_p99_ms: float
    images: str
    seed: int
    window_s: float
    reasons: str


def bench_record(
    log: RequestLog,
    window: Window,
    cpu: ServerCpu | None,
    *,
    system: str,
    robots: int,
    x_ms: float | None,
    images: str,
    seed: int,
) -> BenchRecord:
    """
    Return the record of one system with one fleet.

    :param log: of every process of the load generator, joined
    :param cpu: of the server over the window, None if it can't be read
    """
    sent = log.between(window.from_ns, window.to_ns)
    came = sent.received_ns > 0
    good = came & (sent.reason == int(Reason.OK))
    latency_ns = (sent.received_ns - sent.sent_ns)[good]
    latency = LatencySummary.of(latency_ns)
    lateness = LatencySummary.of(sent.sent_ns - sent.due_ns)
    on_time = int((latency_ns <= sent.budget_ns[good]).sum())
    total_s, decode_s = (None, None) if cpu is None else (cpu.total_s, cpu.decode_s)
    return BenchRecord(
        system=system,
        robots=robots,
        x_ms=x_ms,
        rps=len(latency_ns) / window.seconds,
        p50_ms=latency.p50_ms,
        p95_ms=latency.p95_ms,
        p99_ms=latency.p99_ms,
        server_cpu_ms_per_request=_per_request_ms(total_s, len(sent)),
        wrong=int(log.wrong.sum()),
        unanswered=int((~came).sum()),
        decode_cpu_ms_per_request=_per_request_ms(decode_s, len(sent)),
        refused=int((came & ~good).sum()),
        attainment=on_time / len(latency_ns) if len(latency_ns) else float('nan'),
        goodput_hz=on_time / window.seconds,
        requests=len(sent),
        lateness_p99_ms=lateness.p99_ms,
        lateness_max_ms=lateness.max_ms,
        loop_lag_p99_ms=LatencySummary.of(np.asarray(log.lag_ns)).p99_ms,
        images=images,
        seed=seed,
        window_s=window.seconds,
        reasons=_reasons(sent.reason[came & ~good]),
    )


def _reasons(codes: Column) -> str:
    counts = Counter(Reason.of(code).name for code in codes.tolist())
    return ', '.join(f'{name} {count}' for name, count in counts.most_common())


def _per_request_ms(seconds: float | None, requests: int) -> float | None:
    return None if seconds is None else 1e3 * seconds / max(requests, 1)
