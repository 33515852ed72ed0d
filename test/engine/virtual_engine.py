# SPDX-License-Identifier: Apache-2.0
"""The engine's pipeline in virtual time, on a simulated device, serving simulated robots."""

import heapq
from collections.abc import Callable

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.pipeline import Event, Pipeline
from xinfer_ros.engine.records import Announce, Beat, Done, Dropped, Record, Submit
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.device import Executing, SimulatedDevice
from xinfer_ros.sched.scheduler import Scheduler
from xinfer_ros.sim.scenario import Scenario
from xinfer_ros.sim.simulation import timing
from xinfer_ros.sim.virtual_robot import Draw, VirtualRobot


class VirtualEngine:
    """
    Plays front end, lanes and clock of one pipeline.

    :param scenario: what the robots ask, and how fast the device really is
    :param calibration: what the scheduler believes of the device
    """

    def __init__(self, scenario: Scenario, calibration: Calibration, scheduler: Scheduler) -> None:
        self.responses: list[tuple[int, ...]] = []  # robot, index, sent, received, budget
        self.others: list[Record] = []  # records that are neither results nor signs of life
        self.beats: list[Beat] = []
        self.paces_ns: list[int] = []
        self._time = timing(scenario, calibration)
        self._calibration = calibration
        self._device = SimulatedDevice(scenario.true_rates)
        self._pipeline = Pipeline(
            scheduler,
            self._take_unit,
            self._take_record,
            num_states=scenario.num_robots,
            unit_timeout_ns=60_000_000_000,
        )
        rows = zip(
            scenario.budget_ns.tolist(),
            scenario.draws.tolist(),
            scenario.quota.tolist(),
            strict=True,
        )
        self._robots = [
            VirtualRobot(
                [Draw.of(*drawn) for drawn in zip(budgets, draws, strict=True)],
                quota,
                self._time['period_ns'],
            )
            for budgets, draws, quota in rows
        ]
        self._requests: dict[int, Request] = {}
        self._issued: list[Unit] = []  # by the step under way
        self._running: dict[int, Unit] = {}
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = self._answered = self._now_ns = 0
        for number, start_ns in enumerate(scenario.start_ns.tolist()):
            self._at(start_ns, lambda robot=number: self._send(robot))

    def run(self) -> None:
        """Go on until every robot has left."""
        while self._heap or self._answered < len(self._requests):
            wake_ns, end_ns = self._pipeline.wake_ns, self._device.next_end_ns
            soonest_ns = wake_ns if end_ns is None else min(wake_ns, end_ns)
            if self._heap and self._heap[0][0] <= soonest_ns:
                self._now_ns, _, happen = heapq.heappop(self._heap)
                happen()
            elif wake_ns == soonest_ns:
                self._now_ns = max(self._now_ns, wake_ns)
                self._step(None)
            else:
                self._unit_ends(soonest_ns)

    def _at(self, at_ns: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (at_ns, self._order, happen))
        self._order += 1

    def _step(self, event: Event | None) -> None:
        self._pipeline.step(event, self._now_ns)
        if self._issued:
            self._device.start(self._now_ns, [self._executing(unit) for unit in self._issued])
            self._issued.clear()

    def _send(self, number: int) -> None:
        self._robots[number].send(self._now_ns)
        self._at(self._now_ns + self._robots[number].draw.up_ns, lambda: self._arrive(number))

    def _arrive(self, number: int) -> None:
        draw = self._robots[number].draw
        request = Request(
            key=len(self._requests) + 1,
            robot=number,
            slot=number,
            arrival_ns=self._now_ns,
            budget_ns=draw.budget_ns,
            reserved_ns=self._time['reserved_ns'],
            period_ns=self._time['period_ns'],
        )
        self._requests[request.key] = request
        self._at(self._now_ns + draw.front_end_ns, lambda: self._step(Submit(request=request)))
        announce = Announce(
            robot=number,
            arrival_ns=request.arrival_ns,
            budget_ns=request.budget_ns,
            period_ns=request.period_ns,
        )
        self._step(announce)

    def _take_unit(self, unit: Unit, state_ids: tuple[int, ...]) -> None:
        self._running[unit.number] = unit
        self._issued.append(unit)

    def _executing(self, unit: Unit) -> Executing:
        calibration, stage = self._calibration, unit.stage
        work_ms = (
            calibration.work_ms[stage] * calibration.batch_work[stage][len(unit.requests) - 1]
        )
        return Executing(
            number=unit.number,
            stage=stage,
            begin_ns=self._now_ns + int(calibration.overhead_ms[stage] * 1e6),
            left_ms=work_ms * self._robots[unit.requests[0].robot].draw.noise[stage],
        )

    def _unit_ends(self, at_ns: int) -> None:
        unit = self._running.pop(self._device.end_next())
        end = UnitEnd(unit=unit, started_ns=at_ns, ended_ns=at_ns, error=None)
        self._at(at_ns + self._time['observation_ns'], lambda: self._step(end))

    def _take_record(self, record: Record) -> None:
        if isinstance(record, Beat):
            self.beats.append(record)
        elif isinstance(record, Done):
            self.paces_ns.append(record.ask_after_ns)
            number = self._requests[record.key].robot
            down_ns = self._robots[number].draw.down_ns
            self._at(
                self._now_ns + self._time['output_ns'] + down_ns,
                lambda: self._respond(number, record.ask_after_ns),
            )
        else:
            self._answered += isinstance(record, Dropped)  # its robot asks no more
            self.others.append(record)

    def _respond(self, number: int, ask_after_ns: int) -> None:
        robot = self._robots[number]
        self._answered += 1
        self.responses.append(
            (number, robot.index, robot.sent_ns, self._now_ns, robot.draw.budget_ns)
        )
        next_ns = robot.receive(self._now_ns, ask_after_ns)
        if next_ns is not None and next_ns < self._time['end_ns']:
            self._at(next_ns, lambda: self._send(number))
