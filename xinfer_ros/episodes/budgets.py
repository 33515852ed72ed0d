# SPDX-License-Identifier: Apache-2.0
"""
Budget sequences of episodes: tight around each switch of a gripper, wide elsewhere.

Source: the parcel workload of XInfer, its intervals around grasps and releases and its period.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xinfer_ros.core.budget_sequence import BudgetPhase, BudgetSequence
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.grippers import gripper_switches
from xinfer_ros.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """
    How switches become budgets.

    :param period_ms: time between two responses [ms]
    :param tight_ms: response budget near a switch [ms]
    :param wide_ms: response budget elsewhere [ms]
    :param before_s: what is near before a switch [s]
    :param after_s: what is near after a switch [s]
    """

    period_ms: float = 180.0
    tight_ms: float = 90.0
    wide_ms: float = 400.0
    before_s: float = 1.0
    after_s: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what makes no sequence."""
        for name in ('period_ms', 'tight_ms', 'wide_ms'):
            if not 0.0 < getattr(self, name) <= 60_000.0:
                raise ConfigError(
                    f'{name} is {getattr(self, name):g}; more than 0 and at most 60000 is allowed'
                )
        if self.tight_ms > self.wide_ms:
            raise ConfigError(
                f'tight_ms is {self.tight_ms:g}, wide_ms {self.wide_ms:g}; tight_ms must not be '
                'more than wide_ms: lower the one or raise the other'
            )
        for name in ('before_s', 'after_s'):
            if not 0.0 <= getattr(self, name) <= 3600.0:
                raise ConfigError(f'{name} is {getattr(self, name):g}; 0 to 3600 is allowed')
        if self.before_s + self.after_s <= 0.0:
            raise ConfigError('before_s and after_s are both 0; one of them must be more')


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """
    A time in which the budget is tight.

    :param start_ns: after the start of the episode [ns]
    :param end_ns: after the start of the episode [ns]
    """

    start_ns: int
    end_ns: int


def tight_intervals(
    switches_ns: Sequence[int], duration_ns: int, rule: BudgetRule
) -> tuple[Interval, ...]:
    """
    Return the intervals around switches, within the episode, overlapping ones merged.

    :param switches_ns: times of the switches [ns]
    :param duration_ns: length of the episode [ns]
    :param rule: how far they reach
    """
    found: list[Interval] = []
    for time_ns in sorted(switches_ns):
        start_ns = max(time_ns - round(rule.before_s * 1e9), 0)
        end_ns = min(time_ns + round(rule.after_s * 1e9), duration_ns)
        if found and start_ns <= found[-1].end_ns:
            start_ns = found.pop().start_ns
        if end_ns > start_ns:
            found.append(Interval(start_ns=start_ns, end_ns=end_ns))
    return tuple(found)


def budget_sequence(episode: Episode, rule: BudgetRule) -> BudgetSequence:
    """
    Return the budgets that a robot asks for through an episode.

    The ends of intervals are rounded to whole responses, so that the sequence is as long as the
    episode.

    :param episode: an episode with grippers
    :param rule: how switches become budgets
    :raises ConfigError: if the episode has no gripper, or is shorter than half a response
    """
    if not episode.gripper_joints:
        raise ConfigError(
            f'episode {episode.name} has no gripper among its joints {", ".join(episode.joints)}; '
            'a gripper has "gripper", "finger" or "jaw" in its name, or is named to the command'
        )
    duration_ns = episode.duration_ns
    switches_ns = [switch.time_ns for switch in gripper_switches(episode)]
    intervals = tight_intervals(switches_ns, duration_ns, rule)
    phases = tuple(_phases(intervals, duration_ns, rule))
    if not phases:
        raise ConfigError(
            f'episode {episode.name} is {duration_ns / 1e9:g} s long; a response takes '
            f'{rule.period_ms:g} ms'
        )
    covered_ns = sum(interval.end_ns - interval.start_ns for interval in intervals)
    return BudgetSequence(
        name=episode.name,
        duration_s=duration_ns / 1e9,
        coverage=covered_ns / duration_ns,
        phases=phases,
    )


def _phases(
    intervals: Sequence[Interval], duration_ns: int, rule: BudgetRule
) -> Iterator[BudgetPhase]:
    edges: list[tuple[int, float]] = []
    for interval in intervals:
        edges += [(interval.start_ns, rule.wide_ms), (interval.end_ns, rule.tight_ms)]
    edges.append((duration_ns, rule.wide_ms))
    budgets_ms: list[float] = []
    for until_ns, budget_ms in edges:
        count = round(until_ns / 1e6 / rule.period_ms) - len(budgets_ms)
        budgets_ms += [budget_ms] * count
    for budget_ms, run in itertools.groupby(budgets_ms):
        yield BudgetPhase(budget_ms=budget_ms, responses=len(list(run)))
