# SPDX-License-Identifier: Apache-2.0
"""State and policy together, driven in integer nanoseconds: the readable scheduler core."""

from collections.abc import Sequence
from dataclasses import replace

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import CountersTuple, DecisionTuple, SchedulerCore
from xinfer_ros.sched.mirror import Sight
from xinfer_ros.sched.reference.foresight import Foresight
from xinfer_ros.sched.reference.group import DynamicBatch, Lockstep
from xinfer_ros.sched.reference.lookahead import Lookahead
from xinfer_ros.sched.reference.play_ahead import PlayAhead
from xinfer_ros.sched.reference.policy import Policy
from xinfer_ros.sched.reference.priority import Edf, Fifo, SlackGate
from xinfer_ros.sched.reference.robot_time import DryFirst, RoundRobin
from xinfer_ros.sched.reference.shared_slack import SharedSlack
from xinfer_ros.sched.reference.state import State
from xinfer_ros.sched.settings import (
    EdfSettings,
    FifoSettings,
    ForesightSettings,
    SlackGateSettings,
    XInferSettings,
)
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sched.settings_group import (
    ArmoryEdfSettings,
    DynamicBatchSettings,
    LookaheadSettings,
    RobionSettings,
    RoundRobinSettings,
)


def reference_core(calibration: Calibration, settings: PolicySettings) -> SchedulerCore:
    """
    Return a readable core for one device; it decides as ``native_core`` does, only slower.

    :raises ConfigError: if the policy has no readable implementation
    """
    seen = replace(calibration, rates=settings.device_rates(calibration.rates))
    state = State(seen, settings.limits(calibration), settings)
    return ReferenceCore(state, _policy(state, settings))


def _policy(state: State, settings: PolicySettings) -> Policy:
    match settings:
        case FifoSettings():
            return Fifo(state)
        case EdfSettings():
            return Edf(state)
        case SlackGateSettings():
            return SlackGate(state, settings.threshold_ms)
        case XInferSettings():
            return SharedSlack(state, settings)
        case ForesightSettings():
            return Foresight(state, settings)
        case DynamicBatchSettings():  # and serial
            return DynamicBatch(state, settings)
        case RobionSettings():
            return Lockstep(state, settings)
        case LookaheadSettings(objective='starvation'):
            return PlayAhead(state, settings)
        case LookaheadSettings():
            return Lookahead(state, settings)
        case ArmoryEdfSettings():
            return DryFirst(state, settings.max_batch)
        case RoundRobinSettings():
            return RoundRobin(state, settings.max_batch)
        case _:
            raise ConfigError(f'scheduling policy {settings.name} has no readable implementation')


class ReferenceCore:
    """A scheduling policy and its state; the protocol is ``sched.core.SchedulerCore``."""

    def __init__(self, state: State, policy: Policy) -> None:
        self._state = state
        self._policy = policy
        self._origin_ns: int | None = None
        self._log: list[DecisionTuple] = []
        self._held_back: list[int] = []
        self._prediction_error = 0.0  # [ms]
        self._predictions = 0

    def _ms(self, ns: int) -> float:
        if self._origin_ns is None:
            self._origin_ns = ns
        return (ns - self._origin_ns) * 1e-6

    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None:
        """Take in that a request has arrived and is prepared on the CPU."""
        self._state.announce(
            self._ms(now_ns),
            robot=robot,
            arrival=self._ms(arrival_ns),
            budget=budget_ns * 1e-6,
            period=period_ns * 1e-6,
        )

    def observe(
        self,
        *,
        now_ns: int,
        robot: int,
        executed_steps: int,
        leftover_steps: int,
        horizon_steps: int,
        spacing_ns: int,
    ) -> None:
        """Take in what an observation says of the action queue of a robot."""
        sight = Sight(
            executed=float(executed_steps),
            leftover=float(leftover_steps),
            horizon=float(horizon_steps),
            spacing=spacing_ns * 1e-6,
        )
        self._state.observe(self._ms(now_ns), robot, sight)

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
        self._state.submit(
            self._ms(now_ns),
            key=key,
            robot=robot,
            arrival=self._ms(arrival_ns),
            budget=budget_ns * 1e-6,
            reserved=reserved_ns * 1e-6,
            period=period_ns * 1e-6,
        )

    def release(self, now_ns: int) -> Sequence[int]:
        """Return keys that ``complete`` has held back and that are answered now."""
        self._state.advance(self._ms(now_ns))
        if not self._held_back or not self._policy.releases():
            return []
        released, self._held_back = self._held_back, []
        return released

    def dispatch(self, now_ns: int) -> Sequence[tuple[int, int, Sequence[int]]]:
        """Return the units that start now, in order: number, stage, keys of its requests."""
        started = self._policy.dispatch(self._ms(now_ns))
        load = self._state.predictor.load(self._state.running)
        for unit in started:
            residual = unit.progress.residual_ms(self._state.now, load)
            unit.foreseen_end = self._state.now + residual
        return [
            (unit.number, int(unit.stage), tuple(request.key for request in unit.members))
            for unit in started
        ]

    def complete(self, now_ns: int, number: int) -> Sequence[int]:
        """Take in the end of a unit; its requests wait for the next stage, or are returned."""
        now = self._ms(now_ns)
        unit = self._state.stop(now, number)
        self._state.predictor.learn(
            unit.stage,
            len(unit.members),
            unit.progress.done_ms,
            self._state.settings.learning_rate,
        )
        self._prediction_error += abs(unit.foreseen_end - now)
        self._predictions += 1
        finished: list[int] = []
        for request in unit.members:
            if request.stage is Stage.ACTION:
                (self._held_back if self._policy.holds_back else finished).append(request.key)
                self._state.send(request, now)
            else:
                request.stage = Stage(request.stage + 1)
                self._state.wait(request)
        return finished

    def pace_ns(self, robot: int) -> int:
        """Return how long after its last arrival a robot should ask again, 0 to leave it to it."""
        return int(self._policy.pace(robot) * 1e6)

    def cancel(self, now_ns: int, key: int) -> bool:
        """Take a waiting request out; return False if it runs or is not known."""
        request = self._state.find(key)
        if request is None or request.unit is not None:
            return False
        now = self._ms(now_ns)
        self._state.advance(now)
        self._state.leave_queue(request)
        self._state.remove(request, now)
        return True

    def withdraw(self, now_ns: int, number: int) -> None:
        """Take in the failure of a unit; its requests are gone."""
        now = self._ms(now_ns)
        for request in self._state.stop(now, number).members:
            self._state.remove(request, now)

    def set_budget(self, key: int, budget_ns: int) -> None:
        """Change the response budget of a live request; others are ignored."""
        request = self._state.find(key)
        if request is None:
            return
        if request.unit is None:
            self._state.leave_queue(request)
        request.deadline += budget_ns * 1e-6 - request.budget
        request.budget = budget_ns * 1e-6
        request.put_off = 0.0
        if request.unit is None:
            self._state.wait(request)
        self._state.robots[request.robot].budget = request.budget

    @property
    def correction(self) -> Sequence[float]:
        """Return the work that units of each stage turn out to hold, over the calibration's."""
        return tuple(self._state.predictor.correction)

    @property
    def mirror_error(self) -> float:
        """Return the mean error of the executed steps that were foreseen of robots [steps]."""
        return self._state.mirror_error

    def num_protected(self) -> int:
        """Return the live requests that the scheduling policy shields."""
        return sum(map(self._policy.shields, self._state.live))

    def counters(self) -> CountersTuple:
        """Return what is counted from the first event on."""
        error_ns = round(self._prediction_error * 1e6)
        return tuple(self._policy.verdicts), error_ns, self._predictions

    def keep_log(self, keep: bool) -> None:
        """Choose whether decisions are kept."""
        self._policy.log = self._log if keep else None

    def take_decisions(self) -> Sequence[DecisionTuple]:
        """Return the decisions kept since the last call, as the fields of ``Decision``."""
        kept = list(self._log)
        self._log.clear()
        return kept
