# SPDX-License-Identifier: Apache-2.0
"""The whole fleet by its one command: every process, short."""

import json
import re
import shlex
import signal
import subprocess
import sys

import psutil
import pytest

from xinfer_ros.msg import ExecutorState
from xinfer_ros.ros import qos

from .graph import Graph

ECHO = ('fleet', '--model', 'echo', '--robots', '3', '--robots-per-process', '2', '--warm-up', '1')


def test_a_fleet_runs_and_nothing_is_lost(graph: Graph) -> None:
    done = graph.command(*ECHO, '--duration', '4', '--allow-starved', '5')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'PASSED' in done.stdout
    assert ' 0 unanswered, 0 misaddressed' in done.stdout
    assert int(re.findall(r'(\d+) chunks, ', done.stdout)[-1]) > 40
    assert 'Traceback' not in done.stdout + done.stderr


@pytest.mark.parametrize('victim', ['engine', 'server'])
def test_a_fleet_survives_the_death_of_a_process(graph: Graph, victim: str) -> None:
    """SL-02: by the command that CI runs with the real model."""
    done = graph.command(*ECHO, '--duration', '6', '--kill', victim, '--kill-at', '2')
    assert done.returncode == 0, done.stdout + done.stderr
    assert f'{victim} killed; ready again after' in done.stdout
    assert 'under a new epoch' in done.stdout


def test_a_fleet_with_a_wrong_setting_does_not_start(graph: Graph, tmp_path) -> None:
    """LC-01: told at once, before any process is started."""
    path = tmp_path / 'mine.yaml'
    path.write_text(json.dumps({'/r1/executor': {'ros__parameters': {'comitment_steps': 3}}}))
    done = graph.command(*ECHO, '--params-file', str(path))
    assert done.returncode == 2
    assert 'comitment_steps' in done.stderr
    assert 'did you mean commitment_steps?' in done.stderr
    assert done.stdout == ''


def test_a_bag_is_played_once_to_its_end(graph: Graph) -> None:
    done = graph.command('replay', 'transfer_cube_0', '--once', '--rate', '10')
    assert done.returncode == 0
    assert '1501 messages played' in done.stdout + done.stderr


@pytest.mark.parametrize('node', ['server', 'executor', 'replay'])
def test_every_setting_is_shown(graph: Graph, node: str) -> None:
    done = graph.command('settings', node)
    assert done.returncode == 0
    assert {'server': 'max_robots', 'executor': 'commitment_steps', 'replay': 'rate'}[
        node
    ] in done.stdout


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_running_however_a_fleet_ends(graph: Graph, number: int) -> None:
    """Ctrl-C, a supervisor, a terminal that closes, a crash: no process stays behind."""
    command = [sys.executable, '-m', 'xinfer_ros.cli', *ECHO, '--duration', '60']
    # SIGINT ignored, as a script leaves it to what it starts in the background
    shell = f'trap "" INT; exec {shlex.join(command)} > /dev/null 2>&1'
    fleet = subprocess.Popen(['sh', '-c', shell], env=graph.env)
    reports: list[ExecutorState] = []
    graph.node.create_subscription(ExecutorState, '/r0/executor_state', reports.append, qos.CHUNK)
    graph.until(lambda: reports and reports[-1].chunks > 0, 'the fleet runs')
    family = psutil.Process(fleet.pid).children(recursive=True)
    assert len(family) >= 4  # the server, its engine, two processes of robots
    fleet.send_signal(number)
    _, alive = psutil.wait_procs([psutil.Process(fleet.pid), *family], timeout=30)
    for process in alive:
        process.kill()
    assert alive == []
