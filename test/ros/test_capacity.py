# SPDX-License-Identifier: Apache-2.0
"""More robots than the device is calibrated for, at a real server."""

from pathlib import Path

import numpy as np

from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import Calibration, save_calibration

from .graph import Graph
from .scripted_robot import ScriptedRobot

# about eleven responses a second: two robots with a period of 180 ms. It learns that it is faster,
# but no more than twice as fast
DEVICE = Calibration(
    name='slow',
    device='none',
    model='echo',
    source='a test',
    work_ms=(10.0, 10.0, 90.0),
    overhead_ms=(0.0, 0.0, 0.0),
    output_ms=0.0,
    front_end_ms=1.0,
    reserved_ms=4.0,
    rates=np.ones((3, 2, 2, 2)),
)


def test_a_robot_beyond_the_capacity_is_refused_with_the_figure_and_the_others_are_served(
    graph: Graph, tmp_path: Path
) -> None:
    """SC-01 and SC-05 over the wire: a refusal is an answer, and it costs the others nothing."""
    path = tmp_path / 'slow.json'
    save_calibration(DEVICE, path)
    graph.server(
        '-p', f'calibration:={path}', '-p', 'calibration_mismatch:=warn',
        '-p', 'admission_share:=1.2',
    )  # fmt: skip
    robots = [ScriptedRobot(graph, name) for name in ('r0', 'r1', 'r2')]
    for robot in robots:
        robot.register()
    third = robots[2]
    hasty = {'minimum_period_ns': 20_000_000}
    for _ in range(20):
        asked = [(robot, robot.send(robot.observation())) for robot in robots[:2]]
        asked.append((third, third.send(third.observation(**hasty))))
        answers = [robot.answer_to(request) for robot, request in asked]
        assert [answer.reason for answer in answers[:2]] == [Reason.OK] * 2
        assert answers[2].reason == Reason.REJECTED_CAPACITY
        assert 'responses/s' in answers[2].detail
        assert 'minimum_period_s' in answers[2].detail
        assert all(answer.server_ns <= robots[0].observation().budget_ns for answer in answers)
    slow = third.observation(minimum_period_ns=2_000_000_000)
    assert third.answer_to(third.send(slow)).reason == Reason.OK


def test_without_admission_everybody_is_served(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / 'slow.json'
    save_calibration(DEVICE, path)
    graph.server(
        '-p', f'calibration:={path}', '-p', 'calibration_mismatch:=warn', '-p', 'admission:=none'
    )
    robots = [ScriptedRobot(graph, f'r{index}') for index in range(4)]
    for robot in robots:
        robot.register()
    for robot in robots:
        assert robot.ask().reason == Reason.OK
