# SPDX-License-Identifier: Apache-2.0
"""Whether a run of a fleet was good: nobody starved, everything answered, nothing misaddressed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.errors import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotResult:
    """
    What a robot saw between the end of the warm-up and the end of the run.

    :param latency_p50_ns: of the last 256 chunks [ns]
    :param latency_p99_ns: of the last 256 chunks [ns]
    """

    robot_id: str
    ticks: int
    starved_ticks: int
    requests: int
    chunks: int
    on_time: int
    unanswered: int
    misaddressed: int
    latency_p50_ns: int
    latency_p99_ns: int
    reasons: Counter[Reason] = field(default_factory=Counter)


_DIFFERENCES = (
    'ticks', 'starved_ticks', 'requests', 'chunks', 'on_time', 'unanswered', 'misaddressed',
)  # fmt: skip


def result_of(before: RobotReport, after: RobotReport) -> RobotResult:
    """Return what happened between two reports of one robot."""
    return RobotResult(
        robot_id=after.robot_id,
        latency_p50_ns=after.latency_p50_ns,
        latency_p99_ns=after.latency_p99_ns,
        reasons=after.reasons - before.reasons,
        **{name: getattr(after, name) - getattr(before, name) for name in _DIFFERENCES},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """The results of every robot of a run."""

    robots: tuple[RobotResult, ...]

    def total(self, name: str) -> int:
        """Return a counter summed over the robots."""
        return sum(getattr(robot, name) for robot in self.robots)

    @property
    def starved_share(self) -> float:
        """Return the share of control ticks without a valid action, 0 to 1."""
        return self.total('starved_ticks') / max(self.total('ticks'), 1)

    @property
    def on_time_share(self) -> float:
        """Return the share of chunks that came within their budget, 0 to 1."""
        return self.total('on_time') / max(self.total('chunks'), 1)


def fleet_result(
    before: Mapping[str, RobotReport], after: Mapping[str, RobotReport]
) -> FleetResult:
    """Return the result of a run from the reports at the end of the warm-up and of the run."""
    return FleetResult(robots=tuple(result_of(before[name], after[name]) for name in before))


def refused_robots(reports: Mapping[str, RobotReport]) -> list[str]:
    """Return the robots that the server does not register, with why, if time does not mend it."""
    return [
        f'{robot}: {report.hold}'
        for robot, report in reports.items()
        if report.phase is ExecutorPhase.REGISTERING
        and any(count and reason.is_lasting for reason, count in report.reasons.items())
    ]


def faults(result: FleetResult, allowed_starved_share: float) -> list[str]:
    """
    Return what was wrong with a run, in words; empty if nothing was.

    :param allowed_starved_share: share of starved ticks that passes, 0 to 1
    """
    found = []
    if result.starved_share > allowed_starved_share:
        found.append(
            f'{result.total("starved_ticks")} of {result.total("ticks")} control ticks had no '
            f'valid action ({100 * result.starved_share:.2f} %)'
        )
    if (unanswered := result.total('unanswered')) > 0:  # late answers of the warm-up count back
        found.append(f'{unanswered} requests got no answer')
    if misaddressed := result.total('misaddressed'):
        found.append(f'{misaddressed} chunks were meant for somebody else')
    found += [f'{r.robot_id} got no chunk' for r in result.robots if r.chunks == 0]
    return found
