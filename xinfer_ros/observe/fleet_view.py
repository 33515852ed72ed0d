# SPDX-License-Identifier: Apache-2.0
"""The one place that counts what happens at the front end, for everybody who shows it."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.observation import Observation
from xinfer_ros.core.repeats import RepeatLimit
from xinfer_ros.engine.records import Beat
from xinfer_ros.engine.robots import Robot
from xinfer_ros.engine.seen import Timeline as Seen
from xinfer_ros.engine.status import ServerPhase, ServerStatus, Tally
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.observe.engine_totals import EngineFigures, EngineTotals
from xinfer_ros.observe.fleet_status import FleetStatus
from xinfer_ros.observe.fleet_summary import FleetFacts, summarise
from xinfer_ros.observe.lane_log import LaneLog
from xinfer_ros.observe.levels import ORDINARY, Thresholds
from xinfer_ros.observe.robot_view import RobotView
from xinfer_ros.observe.robot_window import RobotWindow
from xinfer_ros.observe.timeline import Timeline
from xinfer_ros.observe.totals import TotalFigures, Totals

MAX_LOST = 64  # robots whose lease is over that are still shown
NOT_STARTED = ServerStatus(
    epoch=0, phase=ServerPhase.STARTING, model='', num_robots=0, max_robots=0, engine_pid=0
)

log = logging.getLogger(__name__)


class Server(Protocol):
    """The part of the front end that is asked when somebody looks."""

    tally: Tally

    def status(self) -> ServerStatus:
        """Return what the server announces of itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """
    What a view is told of the server's settings; see config.ServerConfig.

    :param window_ns: what rates, shares and percentiles are taken over [ns]
    :param lost_ns: how long a robot is shown after its last sign of life [ns]
    """

    scheduling_policy: str
    reserved_ns: int
    window_ns: int
    lost_ns: int
    thresholds: Thresholds

    @classmethod
    def from_config(cls, config: ServerConfig) -> 'ViewSettings':
        """Return the view's part of the server's settings."""
        return cls(
            scheduling_policy=config.scheduling_policy,
            reserved_ns=round(config.reserved_s * 1e9),
            window_ns=round(config.status_window_s * 1e9),
            lost_ns=round(config.lost_robot_s * 1e9),
            thresholds=Thresholds.from_config(config),
        )


class FleetView:
    """
    Observes the front end and tells of the fleet; thread-safe, and reads no clock.

    ``attach`` the front end before anybody looks: what it says of itself is asked, not told.
    """

    def __init__(self, settings: ViewSettings) -> None:
        self._settings = settings
        self._server: Server | None = None
        self._lock = threading.Lock()  # of the robots; never held while something is computed
        self._robots: dict[Robot, RobotView] = {}
        self._totals, self._engines = Totals(), EngineTotals(settings.window_ns)
        self._lanes, self._repeats = LaneLog(), RepeatLimit()

    def attach(self, server: Server) -> None:
        """Ask this one what the server says of itself; robots of another one are forgotten."""
        with self._lock:
            self._server, self._robots = server, {}

    # What the front end tells

    def joined(self, robot: Robot, contract: ModelContract, now_ns: int) -> None:
        """Show a robot, in place of a lost one of its id."""
        with self._lock:
            if robot in self._robots:
                return
            horizon_steps = robot.registration.horizon or contract.horizon
            window = RobotWindow(self._settings.window_ns, horizon_steps, now_ns)
            view = RobotView(robot, window)
            others = {r: v for r, v in self._robots.items() if v.robot_id != view.robot_id}
            self._robots = {**others, robot: view}
        self._lanes.name(robot.number, robot.registration.robot_id)

    def left(self, robot: Robot, now_ns: int) -> None:
        """Show a robot as lost for a while."""
        with self._lock:
            view = self._robots.get(robot)
            if view is not None:
                view.leave()
                if view.is_shown(now_ns, now_ns):  # else it has said goodbye
                    self._totals.lost()
            shown = [
                v for v in self._robots.values() if v.is_shown(now_ns, self._settings.lost_ns)
            ]
            lost = [view for view in shown if view.is_lost]
            kept = [view for view in shown if view not in lost[:-MAX_LOST]]
            self._robots = {view.robot: view for view in kept}

    def not_registered(self, robot_id: str, refusal: Rejected, now_ns: int) -> None:
        """Count a refusal at registration."""
        self._totals.not_registered(refusal.reason)
        if refusal.reason is Reason.DUPLICATE_ID:
            for view in self._views():
                if view.robot_id == robot_id:
                    view.window.duplicated(now_ns)
        self._say(refusal.reason, f'robot {robot_id!r} is not registered: {refusal}', now_ns)

    def arrived(self, robot: Robot, observation: Observation, arrival_ns: int) -> None:
        """Count an observation."""
        view = self._robots.get(robot)
        self._totals.arrived(view.window.arrived(observation, arrival_ns) if view else None)

    def answered(
        self, robot: Robot, observation: Observation, answer: Answer, arrival_ns: int
    ) -> None:
        """Count an answer; say why it is without rows, if it is and somebody might mend it."""
        server_ns = answer.times.server_ns
        slack_ns = observation.budget_ns - self._settings.reserved_ns - server_ns
        if answer.reason is Reason.OK:
            self._totals.served(answer.times, slack_ns)
        elif answer.reason not in ORDINARY:
            name = robot.registration.robot_id
            text = f'no actions for {name}: {answer.reason.name}: {answer.detail}'
            self._say(answer.reason, text, arrival_ns + server_ns)
        view = self._robots.get(robot)
        if view is not None:
            view.window.answered(
                observation.request_id, answer, arrival_ns + server_ns, on_time=slack_ns >= 0
            )

    def engine_told(self, epoch: int, record: Beat | Seen, now_ns: int) -> None:
        """Count what an engine has counted, and keep what its lanes have done."""
        if isinstance(record, Beat):
            self._engines.beat(epoch, record, now_ns)
        else:
            self._lanes.add(epoch, record)

    def engine_ended(self, now_ns: int) -> None:
        """Count a restart."""
        self._engines.ended(now_ns)

    def mismatched(self, whys: Mapping[str, str]) -> None:
        """Take in whose observations can't reach the server, and why, by namespace."""
        for view in self._views():
            view.mismatch = whys.get(view.robot.registration.namespace, '')

    # What it tells

    def status(self, now_ns: int, rest: Callable[[], None] = lambda: None) -> FleetStatus:
        """
        Return how the fleet is served.

        :param now_ns: server's monotonic clock [ns]
        :param rest: called after each robot, so that who has time lets others go first
        """
        server, settings = self._server_status(), self._settings
        views = [view for view in self._views() if view.is_shown(now_ns, settings.lost_ns)]
        figures, robots = [], []
        for view in views:
            held = view.window.figures(now_ns)
            figures.append(held)
            robots.append(view.status(held, server.phase, settings.thresholds, now_ns))
            rest()
        return summarise(
            FleetFacts(
                scheduling_policy=settings.scheduling_policy,
                window_s=settings.window_ns / 1e9,
                server=server,
                engines=self.engines(now_ns),
                requests=self._totals.requests,
                answers=self.answers(),
                robots=robots,
                figures=figures,
            )
        )

    def timeline(self, since_ns: int, now_ns: int) -> Timeline:
        """Return what the lanes did between two moments, and why requests wait."""
        return self._lanes.timeline(since_ns, now_ns)

    def totals(self) -> TotalFigures:
        """Return what was counted since the server began."""
        return self._totals.figures()

    def engines(self, now_ns: int) -> EngineFigures:
        """Return what the engines have counted, and what the present one does [ns]."""
        serves = self._server_status().phase is ServerPhase.READY
        return self._engines.figures(now_ns, serves=serves)

    def answers(self) -> Counter[Reason]:
        """Return the answers since the server began, by reason."""
        return Counter() if self._server is None else self._server.tally.answered()

    # Inside

    def _server_status(self) -> ServerStatus:
        return NOT_STARTED if self._server is None else self._server.status()

    def _views(self) -> list[RobotView]:
        with self._lock:
            return list(self._robots.values())

    def _say(self, reason: Reason, text: str, now_ns: int) -> None:
        words = self._repeats.words(reason.name, text, now_ns)
        if words is not None:
            log.warning('%s', words)
