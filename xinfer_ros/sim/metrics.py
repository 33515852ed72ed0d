# SPDX-License-Identifier: Apache-2.0
"""What a round came to: attainment, goodput, latency by budget class, update rates."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Responses = npt.NDArray[np.int64]
ROBOT, INDEX, SENT, RECEIVED, BUDGET = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMetrics:
    """
    Of the responses to requests that were sent in the window of a round.

    :param attainment: share of responses within their budget
    :param least_class_attainment: that of the budget class where it is least
    :param tight_attainment: that of the tightest budget
    :param goodput: such responses per second [1/s]
    :param wide_mean_ms: mean latency of the widest budget [ms]
    :param tight_p999_ms: 99.9 % quantile of the tightest budget's latency [ms]
    :param far_late: share of responses later than twice their budget
    :param min_rate_hz: update rate of the slowest robot that stayed all the time [1/s]
    :param min_rate_share: that over the mean of those robots
    :param starvation: share of the time in which a robot had nothing to execute: by its control
        ticks in robot time, else the time that requests were under way beyond their budget
    :param fairness: Jain's index of the update rates of those robots, in robot time of their
        executed steps: 1 if all are equal, 1/n if one has everything
    :param fast_starvation: of the robots with the least execution horizon, in robot time
    :param slow_starvation: of the others, None if there are none
    :param steps_per_device_s: executed steps per second that the device was busy, in robot time
    :param mirror_error_steps: mean error of the server's mirrors of action queues, in robot time
    :param errors: requests without an answer, answered with a reason instead of rows, or with an
        answer that was another robot's; a simulated fleet has none
    :param error_reasons: which errors, as ``EXPIRED 3, unanswered 1``
    """

    responses: int
    attainment: float
    least_class_attainment: float
    tight_attainment: float
    goodput: float
    mean_ms: float
    wide_mean_ms: float
    p50_ms: float
    p99_ms: float
    tight_p999_ms: float
    far_late: float
    mean_rate_hz: float
    min_rate_hz: float
    min_rate_share: float
    starvation: float
    fairness: float
    fast_starvation: float | None = None
    slow_starvation: float | None = None
    steps_per_device_s: float | None = None
    mirror_error_steps: float | None = None
    errors: int = 0
    error_reasons: str = ''


def jain(values: npt.NDArray[np.float64]) -> float:
    """
    Return Jain's fairness index of what each robot has, 1/n to 1.

    Source: Jain, Chiu and Hawe, A quantitative measure of fairness (1984).
    """
    square = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square else 1.0


def round_metrics(
    responses: Responses, *, warm_up_s: float, end_s: float, stayed: npt.NDArray[np.bool_]
) -> RoundMetrics:
    """
    Return the metrics of a round.

    :param responses: rows robot, index, sent, received, budget, shape ``(n, 5)`` int64 [ns]
    :param stayed: which robots were there all the time, shape ``(robots,)``
    :raises ValueError: if no request of the window was answered
    """
    sent = responses[:, SENT]
    window = responses[(sent >= warm_up_s * 1e9) & (sent < end_s * 1e9)]
    if not len(window):
        raise ValueError('no request that was sent in the window was answered')
    latency = (window[:, RECEIVED] - window[:, SENT]) / 1e6
    budget = window[:, BUDGET] / 1e6
    good = latency <= budget
    tight, wide = budget == budget.min(), budget == budget.max()
    seconds = end_s - warm_up_s
    rates = np.bincount(window[:, ROBOT], minlength=len(stayed))[stayed] / seconds
    return RoundMetrics(
        responses=len(window),
        attainment=float(good.mean()),
        least_class_attainment=min(float(good[budget == b].mean()) for b in np.unique(budget)),
        tight_attainment=float(good[tight].mean()),
        goodput=float(good.sum() / seconds),
        mean_ms=float(latency.mean()),
        wide_mean_ms=float(latency[wide].mean()),
        p50_ms=float(np.quantile(latency, 0.5)),
        p99_ms=float(np.quantile(latency, 0.99)),
        tight_p999_ms=float(np.quantile(latency[tight], 0.999)),
        far_late=float((latency > 2.0 * budget).mean()),
        mean_rate_hz=float(rates.mean()),
        min_rate_hz=float(rates.min()),
        min_rate_share=float(rates.min() / rates.mean()),
        starvation=float(np.maximum(latency - budget, 0.0).sum() / _time_ms(window)),
        fairness=jain(rates),
    )


def _time_ms(window: Responses) -> float:
    """Return the time of all robots, each from the first of its requests to its last answer."""
    robots = window[:, ROBOT]
    first = np.full(robots.max() + 1, np.iinfo(np.int64).max)
    last = np.zeros(robots.max() + 1, dtype=np.int64)
    np.minimum.at(first, robots, window[:, SENT])
    np.maximum.at(last, robots, window[:, RECEIVED])
    return float((last - first)[np.unique(robots)].sum()) / 1e6
