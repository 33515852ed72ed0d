# SPDX-License-Identifier: Apache-2.0
"""The scheduler's state: live requests, running units with their progress, recent arrivals."""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.progress import Load, Predictor, Progress, slack_ms
from xinfer_ros.predict.rate_table import Counts
from xinfer_ros.sched.mirror import Mirror, Sight
from xinfer_ros.sched.settings_base import PolicySettings

HISTORY_WINDOW = 180.0  # P, of the arrival history [ms]


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """
    A live request.

    :param deadline: ``l = a + b - delta``
    :param stage: that it waits for, or that runs
    :param unit: that it runs in, None while it waits
    :param promoted_at: since when it is in ``P``, None if it is not
    :param hopeless: whether it is in ``L``: late even if it ran alone from now on
    :param holds: whether its ViT has started, so that it counts against ``max_held``
    :param queued: when it was registered
    :param put_off: added to the deadline of one that was given up for its budget
    :param told: the newest verdict about it, with its stage
    """

    key: int
    robot: int
    arrival: float
    budget: float
    deadline: float
    stage: Stage = Stage.VIT
    unit: 'Unit | None' = None
    promoted_at: float | None = None
    hopeless: bool = False
    holds: bool = False
    queued: float = 0.0
    put_off: float = 0.0
    told: tuple[Stage, int] | None = None

    @property
    def is_protected(self) -> bool:
        """Return whether it is in ``H``, which is ``P`` without ``L``."""
        return self.promoted_at is not None and not self.hopeless


@dataclass(slots=True, eq=False, kw_only=True)
class Unit:
    """
    One dispatch of one stage of one or more requests.

    :param foreseen_end: as predicted once its dispatch was done
    """

    number: int
    stage: Stage
    members: list[Request]
    progress: Progress
    foreseen_end: float = 0.0


@dataclass(slots=True, kw_only=True)
class Robot:
    """
    What is known of one robot, to foresee its next request.

    :param in_server: whether a request of it is here
    :param announced: whether that one is still prepared on the CPU
    :param last_arrival: of its newest request
    :param budget: of that
    :param period: ``TE``
    :param paced: time between arrivals that it was asked for, 0 if none
    :param returned: when its last response left the lanes
    :param spared_until: it is not put off again before
    """

    known: bool = False
    in_server: bool = False
    announced: bool = False
    last_arrival: float = 0.0
    budget: float = 0.0
    period: float = 0.0
    paced: float = 0.0
    returned: float = -math.inf
    spared_until: float = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request as it was registered (reading 1), or as it is forecast."""

    time: float
    budget: float


@dataclass(slots=True)
class State:
    """
    Everything that a scheduling policy sees. Pure: the time is an argument.

    :param limits: units that may run at once on each lane
    :param live: requests in the order of their submission
    :param ready: those that wait for each stage, by (deadline, key)
    :param units: that run, in the order of their dispatch
    :param running: how many units run in each stage, ``n_r``
    :param history: registrations of the last ``HISTORY_WINDOW``
    :param held: requests between the start of ViT and their end
    :param mirrors: of each robot's action queue
    :param front_end: ``f``, from the arrival of a request to its registration
    """

    calibration: Calibration
    limits: Counts
    settings: PolicySettings
    predictor: Predictor = field(init=False)
    live: list[Request] = field(default_factory=list)
    ready: list[list[Request]] = field(default_factory=lambda: [[] for _ in Stage])
    units: list[Unit] = field(default_factory=list)
    running: list[int] = field(default_factory=lambda: [0 for _ in Stage])
    robots: list[Robot] = field(default_factory=list)
    mirrors: list[Mirror] = field(default_factory=list)
    history: list[Arrival] = field(default_factory=list)
    front_end: float = field(init=False)
    now: float = 0.0
    last_unit: int = 0
    held: int = 0

    def __post_init__(self) -> None:
        """Begin with what the calibration says."""
        self.predictor = Predictor(self.calibration, interference=self.settings.interference_model)
        self.front_end = self.calibration.front_end_ms

    @property
    def free_states(self) -> int | None:
        """Return how many requests may still enter ViT, None for any number."""
        return self.settings.max_held - self.held if self.settings.max_held else None

    def has_room(self, stage: int) -> bool:
        """Return whether the lane of a stage can take another unit."""
        if self.running[stage] >= self.limits[stage]:
            return False
        if stage == Stage.VIT and (free := self.free_states) is not None and free <= 0:
            return False
        return self.settings.stage_overlap or sum(self.running) == self.running[stage]

    def remaining(self, load: Load, request: Request) -> float:
        """Return ``R_j(n)``, see ``Load.remaining_ms``."""
        if request.unit is None:
            current = load.stage_ms[request.stage]
        else:
            current = request.unit.progress.residual_ms(self.now, load)
        return load.remaining_ms(request.stage, current)

    def slack(self, load: Load, request: Request) -> float:
        """Return ``sigma_j(n)``, see ``slack_ms``."""
        return slack_ms(request.deadline, self.now, self.remaining(load, request))

    def advance(self, now: float) -> None:
        """Let running units progress under the counts observed since the last event."""
        load = self.predictor.load(self.running)
        for unit in self.units:
            unit.progress.advance(self.now, now, load.rate[unit.stage])
        self.now = max(self.now, now)

    def find(self, key: int) -> Request | None:
        """Return a live request."""
        return next((request for request in self.live if request.key == key), None)

    def wait(self, request: Request) -> None:
        """Queue a request for its stage."""
        insort(self.ready[request.stage], request, key=lambda r: (r.deadline, r.key))

    def leave_queue(self, request: Request) -> None:
        """Take a waiting request out of its queue."""
        self.ready[request.stage].remove(request)

    def announce(
        self, now: float, *, robot: int, arrival: float, budget: float, period: float
    ) -> None:
        """Take in that a request has reached the server and is prepared on the CPU."""
        self.advance(now)
        self.robots += [Robot() for _ in range(robot + 1 - len(self.robots))]
        self.mirrors += [Mirror() for _ in range(robot + 1 - len(self.mirrors))]
        who = self.robots[robot]
        who.known = who.in_server = who.announced = True
        who.last_arrival = arrival
        who.budget = budget
        who.period = period
        who.paced = 0.0

    def submit(
        self,
        now: float,
        *,
        key: int,
        robot: int,
        arrival: float,
        budget: float,
        reserved: float,
        period: float,
    ) -> None:
        """Register a request; it waits for ViT."""
        self.advance(now)
        who = self.robots[robot] if robot < len(self.robots) else Robot()
        if arrival >= who.last_arrival or not who.known:  # else a newer one is here already
            self.announce(now, robot=robot, arrival=arrival, budget=budget, period=period)
            self.robots[robot].announced = False
        deadline = arrival + budget - reserved
        request = Request(
            key=key, robot=robot, arrival=arrival, budget=budget, deadline=deadline, queued=now
        )
        self.live.append(request)
        self.wait(request)
        self.history = [old for old in self.history if old.time > now - HISTORY_WINDOW]
        self.history.append(Arrival(time=now, budget=budget))
        self.front_end += self.settings.learning_rate * (now - arrival - self.front_end)

    def start(self, members: Sequence[Request]) -> Unit:
        """Start a unit of requests that wait for one stage."""
        stage = members[0].stage
        self.last_unit += 1
        progress = Progress(
            stage=stage,
            begin_ms=self.now + self.calibration.overhead_ms[stage],
            work_ms=self.predictor.work_ms(stage, len(members)),
        )
        unit = Unit(number=self.last_unit, stage=stage, members=list(members), progress=progress)
        for request in members:
            self.leave_queue(request)
            request.unit = unit
            if stage is Stage.VIT:
                request.holds = True
                self.held += 1
                self.mirrors[request.robot].compute()
        self.running[stage] += 1
        self.units.append(unit)
        return unit

    def stop(self, now: float, number: int) -> Unit:
        """
        Take a unit off its lane; its requests wait nowhere yet.

        :raises IndexError: if no such unit runs
        """
        self.advance(now)
        for unit in self.units:
            if unit.number == number:
                self.units.remove(unit)
                self.running[unit.stage] -= 1
                for request in unit.members:
                    request.unit = None
                return unit
        raise IndexError(f'no unit {number} is running')

    def observe(self, now: float, robot: int, sight: Sight) -> None:
        """Take in what a robot tells of its action queue."""
        self.advance(now)
        self.mirrors += [Mirror() for _ in range(robot + 1 - len(self.mirrors))]
        self.mirrors[robot].observe(now, sight)

    def send(self, request: Request, now: float) -> None:
        """Take in that the last stage of a request has ended: its chunk is on its way."""
        self.mirrors[request.robot].send(now, self.calibration.output_ms)
        self.remove(request, now)

    @property
    def mirror_error(self) -> float:
        """Return the mean error of foreseen executed steps, over all robots."""
        count = sum(mirror.observations for mirror in self.mirrors)
        total = 0.0
        for mirror in self.mirrors:
            total += mirror.error_sum
        return total / count if count else 0.0

    def remove(self, request: Request, now: float) -> None:
        """Forget a request; its robot is expected back if no newer one of it is here."""
        self.live.remove(request)
        if request.holds:
            self.held -= 1
            self.mirrors[request.robot].withdraw()
        who = self.robots[request.robot]
        if not who.announced and who.last_arrival <= request.arrival:
            who.in_server = False
            who.returned = now
