# SPDX-License-Identifier: Apache-2.0
"""When a fleet counts as served: the criteria of the effective robot capacity."""

from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.records import RoundRecord
from xinfer_ros.sim.metrics import RoundMetrics

ATTAINMENT = 0.95
FAR_LATE = 0.005
MIN_RATE_SHARE = 0.9
STARVATION = 0.05
KNOWN = (
    'known: paper, strict, attainment:SHARE as attainment:0.9, p50:MS as p50:150, '
    'starved:SHARE as starved:0.05'
)
ABOUT = (
    ('paper', 'at least 95 % of the responses within their budget, in every round'),
    (
        'strict',
        'that, and 95 % in every budget class, at most 0.5 % later than twice their budget, and '
        "the slowest robot's update rate at least 90 % of the mean",
    ),
    ('attainment:SHARE', 'that share of the responses within their budget, in every round'),
    ('p50:MS', 'a median latency of at most so many ms in every round'),
    ('starved:SHARE', 'robots, of each tier, without a row at most that share of the time'),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """
    What every round of a fleet must meet; None asks nothing.

    :param attainment: least share of responses within their budget, 0 to 1
    :param class_attainment: that of every budget class
    :param far_late: largest share of responses later than twice their budget
    :param min_rate_share: least update rate of a robot over the mean
    :param p50_ms: largest median latency [ms]
    :param starvation: largest share of time without anything to execute, of the worst tier
    """

    name: str
    attainment: float | None = None
    class_attainment: float | None = None
    far_late: float | None = None
    min_rate_share: float | None = None
    p50_ms: float | None = None
    starvation: float | None = None

    def passes(self, rounds: Sequence[RoundRecord | RoundMetrics]) -> bool:
        """Return whether every round meets it."""
        return not self.faults(rounds)

    def faults(self, rounds: Sequence[RoundRecord | RoundMetrics]) -> list[str]:
        """Return what the worst round misses, in words; empty if nothing."""
        least = (
            (self.attainment, min(r.attainment for r in rounds), 'on time'),
            (
                self.class_attainment,
                min(r.least_class_attainment for r in rounds),
                'of a budget class on time',
            ),
            (self.min_rate_share, min(r.min_rate_share for r in rounds), 'of the mean rate'),
        )
        found = [
            f'{100 * value:.1f} % {what}, {100 * limit:g} % is needed'
            for limit, value, what in least
            if limit is not None and value < limit
        ]
        far_late, p50_ms = max(r.far_late for r in rounds), max(r.p50_ms for r in rounds)
        if self.far_late is not None and far_late > self.far_late:
            found.append(
                f'{100 * far_late:.2f} % later than twice their budget, '
                f'{100 * self.far_late:g} % is allowed'
            )
        if self.p50_ms is not None and p50_ms > self.p50_ms:
            found.append(f'median latency {p50_ms:.0f} ms, {self.p50_ms:g} ms is allowed')
        if errors := sum(r.errors for r in rounds):
            reasons = '; '.join(r.error_reasons for r in rounds if r.error_reasons)
            told = f' ({reasons})' if reasons else ''
            found.append(f'{errors} requests without a good answer{told}, none is allowed')
        starvation = max(_starvation(r) for r in rounds)
        if self.starvation is not None and starvation > self.starvation:
            found.append(
                f'{100 * starvation:.1f} % of the time starved, '
                f'{100 * self.starvation:g} % is allowed'
            )
        return found

    def margin(self, rounds: Sequence[RoundRecord | RoundMetrics]) -> float:
        """Return by how much the worst round meets it, as a share; below 0 if it does not."""
        worst = (
            (self.attainment, min(r.attainment for r in rounds)),
            (self.class_attainment, min(r.least_class_attainment for r in rounds)),
            (self.min_rate_share, min(r.min_rate_share for r in rounds)),
        )
        margins = [value - limit for limit, value in worst if limit is not None]
        most = (
            (self.far_late, max(r.far_late for r in rounds)),
            (self.starvation, max(_starvation(r) for r in rounds)),
        )
        margins += [limit - value for limit, value in most if limit is not None]
        if self.p50_ms is not None:
            margins.append(1.0 - max(r.p50_ms for r in rounds) / self.p50_ms)
        margins += [-1.0] * any(r.errors for r in rounds)
        return min(margins)


def _starvation(found: RoundRecord | RoundMetrics) -> float:
    tiers = (found.starvation, found.fast_starvation, found.slow_starvation)
    return max(share for share in tiers if share is not None)


PAPER = Criterion(name='paper', attainment=ATTAINMENT)
STRICT = Criterion(
    name='strict',
    attainment=ATTAINMENT,
    class_attainment=ATTAINMENT,
    far_late=FAR_LATE,
    min_rate_share=MIN_RATE_SHARE,
)


def parse_criterion(text: str) -> Criterion:
    """
    Return a criterion by its name.

    :raises ConfigError: if there is none of this name, or its number is out of range
    """
    for criterion in (PAPER, STRICT):
        if text == criterion.name:
            return criterion
    kind, _, number = text.partition(':')
    try:
        value = float(number)
    except ValueError:
        raise ConfigError(f'criterion {text} is not known; {KNOWN}') from None
    if kind == 'attainment':
        if not 0.0 < value <= 1.0:
            raise ConfigError(f'criterion {text}: a share from 0 to 1 is needed, as 0.9')
        return Criterion(name=text, attainment=value)
    if kind == 'p50':
        if not 0.0 < value <= 60_000.0:
            raise ConfigError(f'criterion {text}: a latency from 0 to 60000 ms is needed, as 150')
        return Criterion(name=text, p50_ms=value)
    if kind == 'starved':
        if not 0.0 < value < 1.0:
            raise ConfigError(f'criterion {text}: a share from 0 to 1 is needed, as 0.05')
        return Criterion(name=text, starvation=value)
    raise ConfigError(f'criterion {text} is not known; {KNOWN}')
