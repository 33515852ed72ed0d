# SPDX-License-Identifier: Apache-2.0
"""Whether a stall of the network is told as one: real executor, front end and view, two clocks."""

from dataclasses import dataclass

import numpy as np
import pytest
from engine.scripted_engine import SPACING_NS, observation
from robot.driven_robot import DrivenRobot

from xinfer_ros.core.health import Level
from xinfer_ros.errors import Reason
from xinfer_ros.observe.totals import PARTS
from xinfer_ros.robot.session import Grant

from .viewed_fleet import MS, ViewedFleet

DOWN_MS = 3
SERVER_MS = 42


@dataclass(frozen=True)
class Means:
    """Mean time of each part of the answers of a phase [ms]."""

    parts: dict[str, float]
    round_trip: float


class DistantRobot:
    """An executor whose clock has nothing to do with the server's, behind a network."""

    def __init__(self) -> None:
        self.fleet = ViewedFleet()
        self.robot = self.fleet.robot()
        self.driven = DrivenRobot(('a', 'b', 'c'), keyframe_spacing_ns=SPACING_NS)
        self.driven.clock.advance(300_000 * MS)
        grant = Grant(session=self.robot.session, epoch=7, lease_ns=5000 * MS)
        self.driven.executor.granted(grant, self.driven.clock.now_ns())
        self._round_trips: list[int] = []

    def _pass_ms(self, ms: int) -> None:
        self.driven.clock.advance(ms * MS)
        self.fleet.pass_ms(ms)

    def ask(self, up_ms: int) -> None:
        """Send a request when it is due, and wait for its answer."""
        while (draft := self.driven.ask()) is None:
            self._pass_ms(1)
        self._pass_ms(up_ms)
        names = ('request_id', 'episode', 'executed_steps', 'leftover', 'budget_ns', 'ticks')
        told = ('starved_ticks', 'answered_request_id', 'round_trip_ns', 'minimum_period_ns')
        fields = {name: getattr(draft, name) for name in (*names, *told)}
        asked = observation(self.robot, **fields)
        self.fleet.bench.front_end.submit(self.robot, asked, self.fleet.now_ns)
        self._pass_ms(SERVER_MS)
        self.fleet.bench.engine.finish(
            self.fleet.bench.engine.submitted()[-1],
            np.zeros((8, 3), np.float32),
            queue_ns=15 * MS, vit_ns=5 * MS, prefill_ns=10 * MS, action_ns=10 * MS,
        )  # fmt: skip
        self._pass_ms(DOWN_MS)
        answer = self.fleet.bench.answers[-1][1]
        assert self.driven.executor.accept(answer, self.driven.clock.now_ns()) is Reason.OK
        self._round_trips.append(up_ms + SERVER_MS + DOWN_MS)

    def phase(self, requests: int, up_ms: int) -> Means:
        """Ask so often over an uplink of this delay; return where the time went."""
        before = self.fleet.view.totals().parts
        self._round_trips.clear()
        for _ in range(requests):
            self.ask(up_ms)
        after = self.fleet.view.totals().parts
        return Means(
            parts={
                part: (counts.sum_ns - before[part].sum_ns)
                / max(counts.cumulative[-1] - before[part].cumulative[-1], 1)
                / 1e6
                for part, counts in after.items()
            },
            round_trip=float(np.mean(self._round_trips)),
        )


def test_a_stall_of_the_uplink_is_told_as_network_and_as_nothing_else() -> None:
    """
    OB-02: 300 ms more on the uplink are 300 ms more of network, and the parts add up.

    The clocks are five minutes apart; each observation tells of the answer before it, so that
    the first of a phase tells of the phase before.
    """
    robot = DistantRobot()
    robot.ask(5)
    calm = robot.phase(40, 5)
    robot.ask(305)
    stalled = robot.phase(40, 305)
    growth = {part: stalled.parts[part] - ms for part, ms in calm.parts.items()}
    assert growth.pop('network') == pytest.approx(300, abs=20)
    assert set(growth) == set(PARTS)
    assert all(abs(ms) < 5 for ms in growth.values())
    for means in (calm, stalled):
        whole = sum(ms for part, ms in means.parts.items() if part != 'server')
        assert whole == pytest.approx(means.round_trip, abs=5)
    assert robot.driven.executor.report().network_p99_ns == pytest.approx(308 * MS, abs=20 * MS)


def test_the_status_names_the_network_as_the_cause() -> None:
    """OB-02: whoever tunes something tunes the right part."""
    robot = DistantRobot()
    for _ in range(30):
        robot.ask(305)
    status = robot.fleet.of()
    assert status.attainment == 1.0  # the server is not late
    assert status.network_p50_ns == 308 * MS
    assert status.level is not Level.OK
    assert 'network' in status.text
