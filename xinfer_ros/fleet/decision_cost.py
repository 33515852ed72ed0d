# SPDX-License-Identifier: Apache-2.0
"""What a pass of a scheduling policy costs: the calls of a round, replayed in their order."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError, XinferError
from xinfer_ros.fleet.recording_core import Call, RecordingCore
from xinfer_ros.fleet.records import DecisionCostRecord
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.reference import simulate_reference
from xinfer_ros.sim.scenario import Round, draw_scenario
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
    now_ns, dispatch = clock.now_ns, core.dispatch
    for place, call in enumerate(calls):
        if call.name != 'dispatch':
            getattr(core, call.name)(*call.positional, **call.named)
            continue
        (at_ns,) = call.positional
        begin_ns = now_ns()
        units = dispatch(at_ns)
        end_ns = now_ns()
        if tuple(number for number, _, _ in units) != call.units:
            raise XinferError(
                f'call {place} at {at_ns / 1e9:.4f} s started other units than were recorded: '
                'the implementations differ, which is a fault of this package'
            )
        if call.waits and at_ns >= from_ns:
            times_ns.append(end_ns - begin_ns)
            if len(times_ns) == passes:
                break
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
    core = RecordingCore(native_core(calibration, settings))
    simulate_reference(scenario, calibration, settings, core=core)
    return Recording(
        robots=robots,
        settings=settings,
        calibration=calibration,
        calls=core.calls,
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
