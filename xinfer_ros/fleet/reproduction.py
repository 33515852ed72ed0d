# SPDX-License-Identifier: Apache-2.0
"""The rounds that lie beside the published tables: which ones, and their means."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xinfer_ros.fleet.criterion import PAPER, STRICT
from xinfer_ros.fleet.erc import ErcSearch, find_ercs
from xinfer_ros.fleet.paper_tables import ABLATIONS, FleetCase, PaperTables
from xinfer_ros.fleet.records import ErcRecord, RoundRecord
from xinfer_ros.fleet.round_cache import RoundCache
from xinfer_ros.fleet.rounds import RoundPool, RoundResult, RoundTask
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World

FULL = 'xinfer'
# those of the paper, and ours
POLICIES = ('fifo', 'edf', 'slack_gate', FULL, 'foresight', 'foresight_shed')
MAX_ROBOTS = 32
Wanted = tuple[FleetCase, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """
    What was simulated.

    :param rounds: of each case and scheduling policy or ablation of XInfer
    :param ercs: of each workload, policy and criterion
    :param round: its length
    :param seeds: one of each round
    """

    rounds: Mapping[Wanted, Sequence[RoundRecord]]
    ercs: Mapping[tuple[str, str, str], ErcRecord]
    calibration: str
    round: Round
    seeds: tuple[int, ...]

    def mean(self, case: FleetCase, variant: str, name: str) -> float:
        """Return the mean of a field over the rounds."""
        rounds = self.rounds[case, variant]
        return float(sum(getattr(r, name) for r in rounds) / len(rounds))

    def attainment_pct(self, case: FleetCase, variant: str) -> float:
        """Return the mean attainment [%]."""
        return 100.0 * self.mean(case, variant, 'attainment')

    def gain(self, case: FleetCase, ablation: str) -> float:
        """Return what the part that an ablation leaves out is worth [points]."""
        return self.attainment_pct(case, FULL) - self.attainment_pct(case, ablation)

    def goodput_difference(self, case: FleetCase) -> float:
        """Return the goodput of XInfer over that of Slack-Gate [1/s]."""
        return self.mean(case, FULL, 'goodput') - self.mean(case, 'slack_gate', 'goodput')

    def wide_reduction_pct(self, case: FleetCase) -> float:
        """Return by how much XInfer's wide mean latency is under Slack-Gate's [%]."""
        gate = self.mean(case, 'slack_gate', 'wide_mean_ms')
        return 100.0 * (1.0 - self.mean(case, FULL, 'wide_mean_ms') / gate)


class Reproducer:
    """
    Simulates what the published tables tell of, each fleet once.

    :param seeds: one of each round
    :param starting: called with the number of rounds that are about to be run
    :param done: called with each of them
    """

    def __init__(
        self,
        pool: RoundPool,
        calibration: Calibration,
        round: Round,
        seeds: Sequence[int],
        starting: Callable[[int], None],
        done: Callable[[RoundResult], None],
    ) -> None:
        self._calibration, self._round, self._seeds = calibration, round, tuple(seeds)
        self._cache: RoundCache[Wanted] = RoundCache(pool, starting, done)
        self._audited: set[Wanted] = set()

    def run(self, paper: PaperTables, max_robots: int = MAX_ROBOTS) -> Reproduction:
        """Return everything that is compared with the paper."""
        self._audited = {
            (FleetCase(workload='alternating', robots=robots), FULL) for robots in paper.mae_ms
        }
        self.simulate(wanted_for(paper))
        return Reproduction(
            ercs=self._ercs(paper, max_robots),
            rounds=self._cache.rounds,
            calibration=self._calibration.name,
            round=self._round,
            seeds=self._seeds,
        )

    def simulate(self, wanted: Iterable[Wanted]) -> None:
        """Simulate what has not been yet."""
        self._cache.run(list(dict.fromkeys(wanted)), self._tasks)

    def _tasks(self, want: Wanted) -> list[RoundTask]:
        return [self._task(want, number) for number in range(len(self._seeds))]

    def _task(self, want: Wanted, number: int) -> RoundTask:
        case, variant = want
        policy = FULL if variant in ABLATIONS else variant
        changes = ABLATIONS.get(variant, {})
        return RoundTask(
            policy=f'{policy} {variant}' if changes else policy,
            settings=policy_settings(policy, self._calibration, **changes),
            workload=make_workload(case.workload),
            robots=case.robots,
            number=number + 1,
            seed=self._seeds[number],
            calibration=self._calibration,
            world=World(),
            round=self._round,
            audited=want in self._audited,
        )

    def _ercs(self, paper: PaperTables, max_robots: int) -> dict[tuple[str, str, str], ErcRecord]:
        searches = {
            (workload, policy, criterion.name): (ErcSearch(max_robots), criterion)
            for workload in paper.erc
            for policy in POLICIES
            for criterion in (PAPER, STRICT)
        }

        def simulate(
            wave: Sequence[tuple[tuple[str, str, str], int]],
        ) -> list[list[RoundRecord]]:
            wanted = [
                (FleetCase(workload=workload, robots=robots), policy)
                for (workload, policy, _), robots in wave
            ]
            return self._cache.run(wanted, self._tasks)

        return find_ercs(searches, simulate, lambda *_: None)


def wanted_for(paper: PaperTables) -> list[Wanted]:
    """Return every fleet of the tables with every scheduling policy and ablation."""
    return (
        [(case, policy) for case in paper.attainment_pct for policy in POLICIES]
        + [(case, name) for case in paper.gain for name in (FULL, *ABLATIONS)]
        + [(case, name) for case in paper.arrival_aware for name in (FULL, 'no_arrival_aware')]
    )
