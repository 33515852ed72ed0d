# SPDX-License-Identifier: Apache-2.0
"""What the live page is told, as JSON."""

import json
import math

from xinfer_ros.core.health import Level
from xinfer_ros.core.stage import Stage
from xinfer_ros.observe.fleet_history import KEPT_S, FleetHistory
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.page_data import as_json, page_data
from xinfer_ros.observe.timeline import LaneUnit, Timeline, Waiting

SECOND_NS = 1_000_000_000
NOTHING = Timeline(from_ns=0, to_ns=0)


def test_a_number_that_is_none_is_null() -> None:
    status = FleetStatus(robots=(RobotStatus(robot_id='r0', attainment=math.nan),))
    data = json.loads(as_json(page_data(0, status, NOTHING)))
    assert data['fleet']['attainment'] is None
    assert data['robots'][0]['attainment'] is None


def test_an_epoch_is_text_since_no_number_of_javascript_holds_it() -> None:
    epoch = 1_789_000_000_123_456_789
    assert page_data(0, FleetStatus(epoch=epoch), NOTHING)['fleet']['epoch'] == str(epoch)


def test_durations_are_milliseconds_and_levels_are_words() -> None:
    robot = RobotStatus(robot_id='r0', level=Level.WARN, latency_p50_ns=12_340_000)
    told = page_data(0, FleetStatus(robots=(robot,)), NOTHING)['robots'][0]
    assert (told['latency_p50_ms'], told['level'], told['registered']) == (12.34, 'WARN', True)


def test_how_the_server_is_is_told_with_why() -> None:
    status = FleetStatus(level=Level.WARN, text='the device is full')
    told = page_data(0, status, NOTHING)['fleet']
    assert (told['level'], told['text']) == ('WARN', 'the device is full')


def test_units_name_their_robots_by_place() -> None:
    unit = LaneUnit(
        number=7,
        stage=Stage.ACTION,
        started_ns=1_000_000,
        ended_ns=None,
        robots=('r2', 'r0'),
        keys=(11, 12),
        protected=True,
    )
    waits = Waiting(robot='r1', key=13, stage=Stage.VIT, since_ns=4_000_000, why='it waits')
    timeline = Timeline(from_ns=0, to_ns=9_000_000, units=(unit,), waiting=(waits,))
    told = json.loads(as_json(page_data(9_000_000, FleetStatus(), timeline)))['timeline']
    assert told['names'] == ['r0', 'r2']
    assert told['units'] == [[2, 7, 1.0, None, 1, [1, 0], [11, 12]]]
    assert told['waiting'] == [
        {'robot': 'r1', 'key': 13, 'stage': 0, 'since_ms': 5.0, 'why': 'it waits'}
    ]


def test_history_keeps_a_point_a_second_for_five_minutes() -> None:
    history = FleetHistory()
    for half in range(4 * KEPT_S):
        history.take(FleetStatus(responses_hz=float(half)), half * SECOND_NS // 2)
    points = history.points()
    assert len(points) == KEPT_S
    assert points[-1].at_ms - points[0].at_ms == 1000.0 * (KEPT_S - 1)
    assert points[-1].latency_p50_ms == 0.0


def test_a_pause_of_the_sampler_leaves_a_gap_and_no_burst() -> None:
    history = FleetHistory()
    for now_ns in (0, 90 * SECOND_NS, 90 * SECOND_NS + 1, 91 * SECOND_NS):
        history.take(FleetStatus(), now_ns)
    assert [point.at_ms for point in history.points()] == [0.0, 90_000.0, 91_000.0]
    assert history.points()[0].latency_p50_ms is None
