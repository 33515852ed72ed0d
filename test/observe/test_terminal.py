# SPDX-License-Identifier: Apache-2.0
"""The fleet as text."""

from dataclasses import replace

import pytest
from rich.console import Console

from xinfer_ros.core.health import Level
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.terminal import MOST_TROUBLES, Order, fleet_screen

from .scripted_fleet import LATE_TEXT, STARVED_TEXT, ScriptedFleet


def screen(status: FleetStatus, order: Order = Order.NAME, age_s: float = 0.5) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(fleet_screen(status, order, age_s))
    return capture.get()


def rows(text: str) -> list[str]:
    table = text.partition('queue│handoff')[2].splitlines()
    return [line.split()[0] for line in table if line.split()[:1] and line.startswith('r')]


def test_totals_lanes_robots_and_reasons_are_shown() -> None:
    text = screen(ScriptedFleet(4, troubled=False).status(0))
    assert 'READY' in text
    assert 'tiny · foresight' in text
    assert 'on time 100.0 %' in text
    assert 'Action ████████░░  83 %, 2 wait' in text
    assert rows(text) == ['r0', 'r1', 'r2', 'r3']
    assert 'SUPERSEDED 21, HUNG 4' in text


def test_whoever_is_in_trouble_stands_above_the_table_with_the_reason() -> None:
    text = ' '.join(screen(ScriptedFleet(4).status(0)).split())
    assert f'r1: {STARVED_TEXT} r3: {LATE_TEXT} robot level' in text


def test_the_table_is_sorted_as_told() -> None:
    status = ScriptedFleet(12).status(0)
    assert rows(screen(status))[:3] == ['r0', 'r1', 'r2']
    assert rows(screen(status))[-1] == 'r11'
    assert rows(screen(status, Order.WORST))[:3] == ['r1', 'r3', 'r0']
    slowest = max(status.robots, key=lambda robot: robot.latency_p99_ns)
    assert rows(screen(status, Order.LATENCY))[0] == slowest.robot_id
    assert [order.following for order in Order] == [Order.WORST, Order.LATENCY, Order.NAME]


def test_a_server_that_is_silent_is_told() -> None:
    status = ScriptedFleet(2).status(0)
    assert 'no word for 7 s' in screen(status, age_s=7.2)
    assert 'gone' not in screen(status)


def test_an_empty_fleet_and_a_starting_server_are_shown() -> None:
    text = screen(FleetStatus(state=ServerPhase.STARTING))
    assert 'STARTING' in text
    assert 'no robot is registered' in text
    assert 'on time –' in text


def test_long_lists_of_troubles_are_cut() -> None:
    bad = RobotStatus(robot_id='r0', level=Level.ERROR, text='stale')
    robots = tuple(replace(bad, robot_id=f'r{number}') for number in range(MOST_TROUBLES + 3))
    assert 'and 3 more' in screen(FleetStatus(robots=robots))


@pytest.mark.parametrize('steps', [0, 3, 50])
def test_the_handoff_is_marked_in_every_queue(steps: int) -> None:
    robot = RobotStatus(robot_id='r0', queued_steps=steps, commitment_steps=5)
    line = screen(FleetStatus(robots=(robot,))).splitlines()[-1]
    assert line.count('│') == 1
    assert f' {steps} ' in line


def test_text_of_others_does_not_steer_the_terminal() -> None:
    robot = RobotStatus(robot_id='r0', level=Level.ERROR, text='\x1b[2J[red]gone[/]')
    text = screen(FleetStatus(robots=(robot,)))
    assert '\x1b[2J' not in text
    assert '[red]gone[/]' in text
