# SPDX-License-Identifier: Apache-2.0
"""Rounds of a live fleet as the records that simulated ones make, so that all is judged alike."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from xinfer_ros.errors import Reason
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.fleet.bench_record import BenchRecord
from xinfer_ros.fleet.bench_run import FleetResult, LateGeneratorError
from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.fleet.erc import ErcSearch, find_ercs
from xinfer_ros.fleet.records import ErcRecord, RoundRecord
from xinfer_ros.sim.metrics import Responses, RoundMetrics, round_metrics

LIVE = 'live server'
Measure = Callable[[int, int], FleetResult]
Tell = Callable[[str, int, Sequence[RoundRecord], Sequence[str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSearch:
    """
    What is searched for on a live server.

    :param policy: name of its scheduling policy
    :param plan: how each fleet is measured
    :param criterion: what every round of a fleet must meet
    :param max_robots: largest fleet that is tested
    """

    policy: str
    plan: BenchPlan
    criterion: Criterion
    max_robots: int

    def run(self, measure: Measure, tell: Tell) -> ErcRecord:
        """
        Search for the largest fleet that meets the criterion, by the search of simulated ones.

        :param measure: plays one round: robots, seed
        :param tell: called with every fleet that was tested, its rounds, and what they miss
        :returns: its ``faults`` say why a larger fleet could not be measured, if none failed
        :raises BenchFailedError: if no fleet could be measured, or a server failed
        """
        late: dict[int, LateGeneratorError] = {}
        search = ErcSearch(self.max_robots)

        def rounds(wave: Sequence[tuple[str, int]]) -> list[list[RoundRecord]]:
            return [self._measured(robots, measure, late) for _, robots in wave]

        record = find_ercs({self.policy: (search, self.criterion)}, rounds, tell)[self.policy]
        if record.first_failing is None and late:
            return replace(record, faults=(f'not measured, {late[min(late)]}',))
        return record

    def _measured(
        self, robots: int, measure: Measure, late: dict[int, LateGeneratorError]
    ) -> list[RoundRecord]:
        """Measure a fleet, once more if the load generator was late; nothing if it was again."""
        try:
            return self._rounds(robots, measure)
        except LateGeneratorError:
            pass
        try:
            return self._rounds(robots, measure)
        except LateGeneratorError as error:
            if robots == 1:
                raise
            late[robots] = error
            return []

    def _rounds(self, robots: int, measure: Measure) -> list[RoundRecord]:
        return [
            live_round(
                measure(robots, seed),
                policy=self.policy,
                workload=self.plan.workload.name,
                number=number + 1,
            )
            for number, seed in enumerate(self.plan.seeds)
        ]


def live_round(result: FleetResult, *, policy: str, workload: str, number: int) -> RoundRecord:
    """
    Return the record of a live round.

    :param number: of the round, from 1
    """
    record = result.record
    values = asdict(_metrics(result))
    values.pop('mean_ms')
    return RoundRecord(
        policy=policy,
        workload=workload,
        robots=record.robots,
        round=number,
        seed=record.seed,
        calibration=LIVE,
        mae_ms=None,
        real_time_factor=1.0,
        **{
            **values,
            'errors': record.wrong + record.unanswered + record.refused,
            'error_reasons': _error_reasons(record),
        },
    )


def _error_reasons(record: BenchRecord) -> str:
    counts = (('wrong', record.wrong), ('unanswered', record.unanswered))
    told = [f'{name} {count}' for name, count in counts if count]
    return ', '.join([record.reasons] * bool(record.reasons) + told)


def _metrics(result: FleetResult) -> RoundMetrics:
    stayed = np.ones(result.record.robots, np.bool_)
    seconds = result.window.seconds
    try:
        return round_metrics(_responses(result), warm_up_s=0.0, end_s=seconds, stayed=stayed)
    except ValueError:  # nobody got rows
        return _nothing()


def _responses(result: FleetResult) -> Responses:
    """Return the answers with rows, times from the beginning of the window on ``(n, 5)``."""
    window = result.window
    log = result.log.between(window.from_ns, window.to_ns)
    good = (log.received_ns > 0) & (log.reason == int(Reason.OK))
    columns = (log.robot, np.arange(len(log)), log.sent_ns, log.received_ns, log.budget_ns)
    responses: Responses = np.stack(columns, axis=1)[good]
    responses[:, 2:4] -= window.from_ns
    return responses


def _nothing() -> RoundMetrics:
    """Return the metrics of a fleet that got no rows at all."""
    never, none = float('inf'), 0.0
    return RoundMetrics(
        responses=0,
        attainment=none,
        least_class_attainment=none,
        tight_attainment=none,
        goodput=none,
        mean_ms=never,
        wide_mean_ms=never,
        p50_ms=never,
        p99_ms=never,
        tight_p999_ms=never,
        far_late=1.0,
        mean_rate_hz=none,
        min_rate_hz=none,
        min_rate_share=none,
        starvation=1.0,
        fairness=none,
    )
