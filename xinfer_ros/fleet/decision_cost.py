# SPDX-License-Identifier: Apache-2.0
"""What a pass of a scheduling policy costs: the calls of a round, replayed in their order."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError, XinferError
from xinfer_ros.fleet.records import DecisionCostRecord
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import DecisionTuple, SchedulerCore
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings import PolicySettings
from xinfer_ros.sim.kernel import simulate_reference
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call of a core.

    :param name: of the method
    :param positional: its positional arguments
    :param named: its keyword arguments
    :param waits: whether a request was waiting: such a ``dispatch`` is timed
    :param units: numbers of the units that it started
    """

    name: str
    positional: tuple[int, ...] = ()
    named: dict[str, int] = field(default_factory=dict)
    waits: bool = False
    units: tuple[int, ...] = ()


class RecordingCore:
    """A scheduler core that hands every call on to another, and keeps it."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self._waiting: set[int] = set()
        self._members: dict[int, tuple[int, ...]] = {}
        self.calls: list[Call] = []

    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        named = {
            'now_ns': now_ns,
            'robot': robot,
            'arrival_ns': arrival_ns,
            'budget_ns': budget_ns,
            'period_ns': period_ns,
        }
        self.calls.append(Call(name='announce', named=named))
        self._core.announce(**named)

    def submit(
        self,
        *,
        now_ns: int,
        key: int,
        robot: int,
        arrival_ns: int,
        budget_ns: int,
        reserved_ns: int,
        period_ns: int,
    ) -> None:
        """Take in a request that can start."""
        named = {
            'now_ns': now_ns,
            'key': key,
            'robot': robot,
            'arrival_ns': arrival_ns,
            'budget_ns': budget_ns,
            'reserved_ns': reserved_ns,
            'period_ns': period_ns,
        }
        self.calls.append(Call(name='submit', named=named))
        self._waiting.add(key)
        self._core.submit(**named)

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Return the units that start now."""
        waits = bool(self._waiting)
        units = self._core.dispatch(now_ns)
        numbers = tuple(number for number, _, _ in units)
        self.calls.append(Call(name='dispatch', positional=(now_ns,), waits=waits, units=numbers))
        for number, _, keys in units:
            self._members[number] = tuple(keys)
            self._waiting.difference_update(keys)
        return units

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit."""
        self.calls.append(Call(name='complete', positional=(now_ns, number)))
        finished = self._core.complete(now_ns, number)
        self._waiting.update(set(self._members.pop(number)).difference(finished))
        return finished

    def pace_ns(self, robot: int) -> int:
        """Return how long after its last arrival a robot should ask again."""
        self.calls.append(Call(name='pace_ns', positional=(robot,)))
        return self._core.pace_ns(robot)

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out."""
        self.calls.append(Call(name='cancel', positional=(now_ns, key)))
        self._waiting.discard(key)
        return self._core.cancel(now_ns, key)

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit."""
        self.calls.append(Call(name='withdraw', positional=(now_ns, number)))
        self._members.pop(number)
        self._core.withdraw(now_ns, number)

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request."""
        self.calls.append(Call(name='set_budget', positional=(key, budget_ns)))
        self._core.set_budget(key, budget_ns)

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units turn out to hold, over the calibration's."""
        return self._core.correction

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept; that is no call to replay."""
        self._core.keep_log(keep)

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call."""
        return self._core.take_decisions()


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
