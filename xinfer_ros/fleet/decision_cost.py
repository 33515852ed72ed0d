# SPDX-License-Identifier: Apache-2.0
"""What a pass of a scheduling policy costs: the calls of a round, replayed in their order."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, XinferError
from xinfer_ros.fleet.records import DecisionCostRecord
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.journal import Call, CallKind, JournalReader, Started
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.scenario import Round, draw_scenario
from xinfer_ros.sim.simulation import simulate
from xinfer_ros.sim.workload import make_workload

IMPLEMENTATIONS: dict[str, Callable[[Calibration, PolicySettings], SchedulerCore]] = {
    'native': native_core,
    'reference': reference_core,
}
MIN_PERIOD_MS = 180.0
SMALL_FLEET = 20
# Larger fleets ask for 80 responses a second together, about what one device can give; more would
# pile up for as long as their periods are
PERIOD_MS_PER_ROBOT = 12.5
# The readable core takes its time: fewer passes of it are timed, and it is not repeated for ever
MAX_PASSES = {'native': 100_000, 'reference': 500}
PATIENCE_S = 30.0


class Waiting:
    """Which requests wait, by the calls of a core: a pass without any has nothing to decide."""

    def __init__(self) -> None:
        self._keys: set[int] = set()
        self._running: dict[int, Started] = {}

    def __bool__(self) -> bool:
        """Return whether a request waits."""
        return bool(self._keys)

    def take(self, call: Call) -> None:
        """Take in a call with its answer."""
        match call.kind:
            case CallKind.SUBMIT:
                self._keys.add(call.named()['key'])
            case CallKind.CANCEL:
                self._keys.difference_update(call.told)
            case CallKind.DISPATCH:
                for unit in call.units:
                    self._running[unit.number] = unit
                    self._keys.difference_update(unit.keys)
            case CallKind.COMPLETE | CallKind.WITHDRAW:
                unit = self._running.pop(call.told[0])
                if call.kind is CallKind.COMPLETE and unit.stage < Stage.ACTION:
                    self._keys.update(unit.keys)


def replay(
    calls: Sequence[Call], core: SchedulerCore, clock: Clock, *, from_ns: int, passes: int
) -> list[int]:
    """
    Repeat calls on a fresh core; return what passes with work waiting took [ns].

    :param from_ns: simulated time of the first one that is timed [ns]
    :param passes: number of them after which the replay ends
    :raises XinferError: if the core decides otherwise than the one that was recorded
    """
    times_ns: list[int] = []
    waiting, now_ns, dispatch = Waiting(), clock.now_ns, core.dispatch
    for place, call in enumerate(calls):
        if call.kind is not CallKind.DISPATCH:
            call.make(core)
            waiting.take(call)
            continue
        begin_ns = now_ns()
        units = dispatch(call.now_ns)
        end_ns = now_ns()
        if [number for number, _, _ in units] != [unit.number for unit in call.units]:
            raise XinferError(
                f'call {place} at {call.now_ns / 1e9:.4f} s started other units than were '
                'recorded: the implementations differ, which is a fault of this package'
            )
        if waiting and call.now_ns >= from_ns:
            times_ns.append(end_ns - begin_ns)
            if len(times_ns) >= passes:
                break
        waiting.take(call)
    return times_ns


def period_ms(robots: int) -> float:
    """Return the ``TE`` at which a fleet loads the device, but not absurdly [ms]."""
    return MIN_PERIOD_MS if robots <= SMALL_FLEET else PERIOD_MS_PER_ROBOT * robots


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """
    Every call that a round makes to the scheduler.

    :param from_ns: when every robot has asked once, and passes are worth timing [ns]
    """

    robots: int
    settings: PolicySettings
    calibration: Calibration
    calls: Sequence[Call]
    from_ns: int


def record(
    robots: int,
    calibration: Calibration,
    settings: PolicySettings,
    *,
    seconds: float,
    seed: int = 1,
) -> Recording:
    """
    Simulate a fleet of alternating budgets and keep the calls.

    :param seconds: simulated time after every robot has asked once [s]
    """
    first_s = period_ms(robots) / 1e3
    scenario = draw_scenario(
        make_workload('alternating'),
        robots,
        calibration,
        seed=seed,
        round=Round(warm_up_s=0.0, end_s=first_s + seconds, period_ms=period_ms(robots)),
    )
    core = native_core(calibration, settings)
    core.keep_journal(True)
    simulate(scenario, calibration, settings, core=core)
    return Recording(
        robots=robots,
        settings=settings,
        calibration=calibration,
        calls=tuple(JournalReader().read(core.take_journal())),
        from_ns=round(first_s * 1e9),
    )


def decision_cost(
    recording: Recording, implementation: str, clock: Clock, *, repeats: int
) -> DecisionCostRecord:
    """
    Return what a pass costs: the median of the replays' quantiles.

    :param implementation: ``native`` or ``reference``
    :param repeats: number of replays; fewer if they take long
    :raises ConfigError: if no request ever waited
    """
    gc.collect()
    gc.freeze()  # else the collector walks the recording in the middle of a pass
    try:
        replays = _replays(recording, implementation, clock, repeats)
    finally:
        gc.unfreeze()
    quantiles = [np.quantile(times, (0.5, 0.99)) for times in replays]
    median_ns, tail_ns = np.median(quantiles, axis=0)
    return DecisionCostRecord(
        implementation=implementation,
        policy=recording.settings.name,
        robots=recording.robots,
        p50_us=float(median_ns / 1e3),
        p99_us=float(tail_ns / 1e3),
        calls=len(replays[0]),
        repeats=len(replays),
        period_ms=period_ms(recording.robots),
    )


def _replays(
    recording: Recording, implementation: str, clock: Clock, repeats: int
) -> list[list[int]]:
    begin_ns, replays = clock.now_ns(), []
    for _ in range(repeats):
        times = replay(
            recording.calls,
            IMPLEMENTATIONS[implementation](recording.calibration, recording.settings),
            clock,
            from_ns=recording.from_ns,
            passes=MAX_PASSES[implementation],
        )
        if not times:
            raise ConfigError(
                f'no request of {recording.robots} robots waited in the time recorded; '
                'record more seconds'
            )
        replays.append(times)
        if clock.now_ns() - begin_ns > PATIENCE_S * 1e9:
            break
    return replays
