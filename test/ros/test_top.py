# SPDX-License-Identifier: Apache-2.0
"""``xinfer top`` on a graph where a test says what a server would."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from observe.scripted_fleet import LATE_TEXT, ScriptedFleet

from xinfer_ros.msg import FleetStatus
from xinfer_ros.ros.fleet_messages import from_fleet_status

from .graph import Graph

TOPIC = '/fleet/fleet_status'
COMMAND = [sys.executable, '-m', 'xinfer_ros.cli', 'top']


@pytest.fixture
def told(graph: Graph) -> Graph:
    """Give a graph on which the status of four robots is published."""
    publisher = graph.node.create_publisher(FleetStatus, TOPIC, 10)
    stamp = graph.node.get_clock().now().to_msg()
    message = from_fleet_status(ScriptedFleet(4).status(0), stamp)
    graph.node.create_timer(0.2, lambda: publisher.publish(message))
    return graph


class Terminal:
    """
    A terminal in which the command runs.

    :param graph: its graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        env = graph.env | {'TERM': 'xterm', 'COLUMNS': '120', 'LINES': '40'}
        self.process = subprocess.Popen(
            COMMAND, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.output = ''

    def reads(self, words: str) -> bool:
        """Return whether words have been printed by now."""
        with contextlib.suppress(OSError):  # nothing new, or it has ended
            self.output += os.read(self._ours, 65536).decode(errors='replace')
        return words in self.output

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._ours, key.encode())

    def close(self) -> None:
        """End whatever runs."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(told: Graph) -> Iterator[Terminal]:
    """Give a terminal that shows the fleet."""
    terminal = Terminal(told)
    try:
        told.until(lambda: terminal.reads('order: name'), 'the fleet is shown')
        yield terminal
    finally:
        terminal.close()


def test_top_shows_once_what_a_server_says(told: Graph) -> None:
    top = told.command('top', '--once', '--sort', 'worst')
    assert top.returncode == 0, top.stderr
    words = ' '.join(top.stdout.split())
    assert 'READY tiny · foresight' in words
    assert f'r3: {LATE_TEXT}' in words
    assert words.index('r1 ERROR') < words.index('r3 WARN') < words.index('r0 OK')


def test_top_sorts_and_quits_by_keys(told: Graph, terminal: Terminal) -> None:
    terminal.press('s')
    told.until(lambda: terminal.reads('order: worst'), 'another order')
    terminal.press('q')
    told.until(lambda: terminal.process.poll() is not None, 'it ends')
    assert terminal.process.returncode == 0


def test_top_ends_clean_on_ctrl_c(told: Graph, terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)
    told.until(lambda: terminal.process.poll() is not None, 'it ends')
    assert terminal.process.returncode == 130
    assert terminal.reads('\x1b[?1049l')  # the screen that was there before is back
    assert 'Traceback' not in terminal.output


def test_top_tells_where_it_has_listened_if_it_hears_nothing(graph: Graph) -> None:
    done = graph.command('top', '--once', '--wait', '0.5')
    assert done.returncode == 1
    assert f'nobody publishes {TOPIC}' in done.stderr
    assert f'ROS_DOMAIN_ID={graph.env["ROS_DOMAIN_ID"]}' in done.stderr
    assert 'ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST' in done.stderr
    assert 'Traceback' not in done.stderr


def test_top_hears_on_and_says_what_it_can_not_understand(graph: Graph) -> None:
    """SE-01: a status in an unknown state had ended its listening, without a word."""
    publisher = graph.node.create_publisher(FleetStatus, TOPIC, 10)
    stamp = graph.node.get_clock().now().to_msg()
    said: list[Any] = [bytes(30), FleetStatus(state=99)]
    graph.node.create_timer(0.1, lambda: [publisher.publish(message) for message in said])
    terminal = Terminal(graph)
    try:
        words = f'Waiting: {TOPIC} is not understood (99 is not a valid'
        graph.until(lambda: terminal.reads(words), 'it says why it waits')
        said.append(from_fleet_status(ScriptedFleet(4).status(0), stamp))
        graph.until(lambda: terminal.reads('order: name'), 'the fleet is shown')
        assert 'Traceback' not in terminal.output
    finally:
        terminal.close()
