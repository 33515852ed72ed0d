# SPDX-License-Identifier: Apache-2.0
"""The event kernel in Python, to be read: it drives any scheduler core through one round."""

import heapq
from collections.abc import Callable, Sequence

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Rejected
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice
from xinfer_ros.sched.admission import CapacityAdmission
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sim.scenario import Scenario
from xinfer_ros.sim.simulation import timing
from xinfer_ros.sim.virtual_robot import Draw, VirtualRobot

Handler = Callable[[int, int], None]  # of an event: time [ns], subject


class Kernel:
    """
    A heap of (time, order, handler, subject); events of one time go in the order of their making.

    A request passes ``send``, ``arrive``, ``ready``, then for each stage ``dispatch`` and
    ``observed``, then ``response``, which makes the next ``send`` of its robot.

    :param admission: refuses robots at ``arrive``; by default all are served
    """

    def __init__(
        self,
        scenario: Scenario,
        calibration: Calibration,
        settings: PolicySettings,
        core: SchedulerCore,
        admission: CapacityAdmission | None = None,
    ) -> None:
        self.responses: list[tuple[int, ...]] = []
        self.refusals: list[tuple[int, ...]] = []
        self.transitions: list[tuple[int, ...]] = []
        self.events = 0
        self._calibration = calibration
        self._core = core
        self._admission = admission or CapacityAdmission(None)
        self._time = timing(scenario, calibration)
        self._device = SimulatedDevice(settings.device_rates(scenario.true_rates))
        self._robots = [
            VirtualRobot(
                [Draw.of(*drawn) for drawn in zip(budgets, draws, strict=True)],
                quota,
                self._time['period_ns'],
            )
            for budgets, draws, quota in zip(
                scenario.budget_ns.tolist(),
                scenario.draws.tolist(),
                scenario.quota.tolist(),
                strict=True,
            )
        ]
        self._arrived_ns = [0 for _ in self._robots]
        self._key = [0 for _ in self._robots]  # of each robot's request in flight
        self._pace_ns = [0 for _ in self._robots]
        self._robot_of: dict[int, int] = {}  # by key
        self._lanes = Lanes(settings.limits(calibration), settings)
        self._tick_pending = False
        self._heap: list[tuple[int, int, Handler, int]] = []
        self._order = 0
        for robot, start_ns in enumerate(scenario.start_ns.tolist()):
            if scenario.quota[robot] > 0:
                self._push(start_ns, self._send, robot)

    def run(self) -> None:
        """Handle events until there are no more; an event goes before the end of a unit."""
        while self._heap or self._device.next_end_ns is not None:
            self.events += 1
            end_ns = self._device.next_end_ns
            if self._heap and (end_ns is None or self._heap[0][0] <= end_ns):
                now_ns, _, handle, subject = heapq.heappop(self._heap)
                handle(now_ns, subject)
            elif end_ns is not None:
                number = self._device.end_next()
                self._push(end_ns + self._time['observation_ns'], self._observed, number)

    def _push(self, at_ns: int, handler: Handler, subject: int) -> None:
        heapq.heappush(self._heap, (at_ns, self._order, handler, subject))
        self._order += 1

    def _send(self, now_ns: int, robot: int) -> None:
        """Let a robot send its next request."""
        self._robots[robot].send(now_ns)
        self._push(now_ns + self._robots[robot].draw.up_ns, self._arrive, robot)

    def _arrive(self, now_ns: int, robot: int) -> None:
        """Let a request reach the server, which prepares it on the CPU."""
        draw = self._robots[robot].draw
        try:
            self._admission.ask(robot, self._time['period_ns'], draw.budget_ns, now_ns, 1.0)
        except Rejected:
            self._push(now_ns + draw.down_ns, self._refusal, robot)
            return
        self._announce(now_ns, robot)
        self._push(now_ns + draw.front_end_ns, self._ready, robot)

    def _announce(self, now_ns: int, robot: int) -> None:
        self._arrived_ns[robot] = now_ns
        self._key[robot] = len(self._robot_of) + 1
        self._robot_of[self._key[robot]] = robot
        self._core.announce(
            now_ns=now_ns,
            robot=robot,
            arrival_ns=now_ns,
            budget_ns=self._robots[robot].draw.budget_ns,
            period_ns=self._time['period_ns'],
        )

    def _ready(self, now_ns: int, robot: int) -> None:
        """Let the scheduler have a request."""
        self._submit(now_ns, robot)
        self._dispatch(now_ns)

    def _submit(self, now_ns: int, robot: int) -> None:
        self._core.submit(
            now_ns=now_ns,
            key=self._key[robot],
            robot=robot,
            arrival_ns=self._arrived_ns[robot],
            budget_ns=self._robots[robot].draw.budget_ns,
            reserved_ns=self._time['reserved_ns'],
            period_ns=self._time['period_ns'],
        )
        self._lanes.waiting[Stage.VIT] += 1

    def _observed(self, now_ns: int, number: int) -> None:
        """Let the scheduler know of the end of a unit."""
        finished = self._core.complete(now_ns, number)
        stage, count = self._lanes.end(number)
        self.transitions.append((now_ns, number, stage, count, 0))
        self._respond(now_ns, finished)
        self._dispatch(now_ns)

    def _respond(self, now_ns: int, finished: Sequence[int]) -> None:
        """Let answers leave."""
        for key in finished:
            robot = self._robot_of[key]
            self._pace_ns[robot] = self._core.pace_ns(robot)
            down_ns = self._robots[robot].draw.down_ns
            self._push(now_ns + self._time['output_ns'] + down_ns, self._response, robot)

    def _response(self, now_ns: int, number: int) -> None:
        """Let a robot have its answer."""
        robot = self._robots[number]
        self.responses.append((number, robot.index, robot.sent_ns, now_ns, robot.draw.budget_ns))
        self._go_on(number, robot.receive(now_ns, self._pace_ns[number]))

    def _refusal(self, now_ns: int, number: int) -> None:
        """Let a robot know that it is not served; it asks again."""
        robot = self._robots[number]
        self.refusals.append((number, robot.index, robot.sent_ns, now_ns, robot.draw.budget_ns))
        self._go_on(number, robot.receive(now_ns, 0))

    def _go_on(self, number: int, next_ns: int | None) -> None:
        if next_ns is None:
            self._admission.forget(number)
        elif next_ns < self._time['end_ns']:
            self._push(next_ns, self._send, number)

    def _tick(self, now_ns: int, _: int) -> None:
        """Look again at what waits, as time alone can change the decision."""
        self._tick_pending = False
        self._dispatch(now_ns)

    def _dispatch(self, now_ns: int) -> None:
        self._respond(now_ns, self._core.release(now_ns))
        started = self._core.dispatch(now_ns)
        if started:
            self._device.start(now_ns, [self._executing(now_ns, *unit) for unit in started])
        for number, stage, keys in started:
            self._lanes.start(number, stage, len(keys))
            self.transitions.append((now_ns, number, stage, len(keys), 1))
        if self._lanes.could_start() and not self._tick_pending:
            self._tick_pending = True
            self._push(now_ns + self._time['tick_ns'], self._tick, 0)

    def _executing(self, now_ns: int, number: int, stage: int, keys: Sequence[int]) -> Executing:
        calibration = self._calibration
        noise = self._robots[self._robot_of[keys[0]]].draw.noise[stage]
        work_ms = calibration.work_ms[stage] * calibration.batch_work[stage][len(keys) - 1]
        return Executing(
            number=number,
            stage=Stage(stage),
            begin_ns=now_ns + int(calibration.overhead_ms[stage] * 1e6),
            left_ms=work_ms * noise,
        )


class Lanes:
    """What waits and what runs in each stage, as an onlooker of the scheduler can count it."""

    def __init__(self, limits: Sequence[int], settings: PolicySettings) -> None:
        self._limits, self._settings = limits, settings
        self._held = 0
        self._units: dict[int, tuple[int, int]] = {}  # stage and size, by number
        self._running = [0 for _ in Stage]
        self.waiting = [0 for _ in Stage]

    def start(self, number: int, stage: int, count: int) -> None:
        """Count a unit that starts."""
        self._units[number] = stage, count
        self.waiting[stage] -= count
        self._running[stage] += 1
        self._held += count if stage == Stage.VIT else 0

    def end(self, number: int) -> tuple[int, int]:
        """Count a unit that ended; return its stage and size."""
        stage, count = self._units.pop(number)
        self._running[stage] -= 1
        self._held -= count if stage == Stage.ACTION else 0
        if stage < Stage.ACTION:
            self.waiting[stage + 1] += count
        return stage, count

    def could_start(self) -> bool:
        """Return whether anything waits for a lane that has room."""
        return any(self.waiting[stage] and self._has_room(stage) for stage in Stage)

    def _has_room(self, stage: Stage) -> bool:
        settings, running = self._settings, self._running
        if running[stage] >= self._limits[stage]:
            return False
        if stage is Stage.VIT and settings.max_held and self._held >= settings.max_held:
            return False
        return settings.stage_overlap or sum(running) == running[stage]
