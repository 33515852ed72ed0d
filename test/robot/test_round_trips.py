# SPDX-License-Identifier: Apache-2.0
"""What an executor tells of the network, by its own clock."""

from xinfer_ros.core.chunk import ServerTimes
from xinfer_ros.errors import Reason

from .driven_robot import MS, DrivenRobot, moving_robot


def test_network_is_the_round_trip_less_the_time_in_the_server() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    assert (draft.answered_request_id, draft.round_trip_ns) == (0, 0)
    robot.clock.advance(90 * MS)
    assert robot.answer(draft, times=ServerTimes(server_ns=70 * MS)) is Reason.OK
    report = robot.executor.report()
    assert report.latency_p50_ns == 90 * MS
    assert report.network_p50_ns == report.network_p99_ns == 20 * MS
    following = robot.ask_when_due()
    assert following.answered_request_id == draft.request_id
    assert following.round_trip_ns == 90 * MS


def test_an_answer_without_rows_tells_of_the_network_as_well() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    robot.clock.advance(30 * MS)
    refused = {'reason': Reason.EXPIRED, 'times': ServerTimes(server_ns=10 * MS)}
    assert robot.answer(draft, **refused) is Reason.EXPIRED
    assert robot.executor.report().network_p50_ns == 20 * MS
    assert robot.executor.report().latency_p50_ns == 0  # there was no chunk


def test_a_server_that_tells_more_than_the_round_trip_is_not_believed() -> None:
    robot = DrivenRobot()
    draft = robot.ask_when_due()
    robot.clock.advance(30 * MS)
    robot.answer(draft, times=ServerTimes(server_ns=50 * MS))
    assert robot.executor.report().network_p50_ns == 0


def test_ticks_are_told_with_the_observation() -> None:
    robot = moving_robot(queued=5)
    robot.tick(7)
    draft = robot.ask_when_due()
    assert (draft.ticks, draft.starved_ticks) == (7, 2)
