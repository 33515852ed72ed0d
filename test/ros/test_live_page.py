# SPDX-License-Identifier: Apache-2.0
"""The live page of a real server and of robots that replay episodes."""

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from web.browser import browsing, missing

from .graph import EPISODES, Graph


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listening:
        return int(listening.getsockname()[1])


def row(robot: str) -> str:
    return f'document.querySelector(\'tbody[data-robot="{robot}"]\')'


def units(url: str) -> list[Any]:
    with urllib.request.urlopen(f'{url}snapshot.json') as answer:
        return list(json.load(answer)['timeline']['units'])


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_killed_robot_turns_red_on_the_page_of_a_real_server(
    graph: Graph, tmp_path: Path
) -> None:
    pytest.importorskip('selenium', reason='no selenium: requirements/dev.txt has it')
    port = free_port()
    server = graph.server('-p', 'spare_engine:=false', '-p', f'http_port:={port}')
    robots = [
        graph.run('robots_main', '--robot', f'{robot}={EPISODES}/transfer_cube_{place}@0')
        for place, robot in enumerate(('r0', 'r1'))
    ]
    url = f'http://127.0.0.1:{port}/'
    with browsing(tmp_path) as browser:
        graph.until(lambda: f'live page at {url}' in server.output, 'the page is there')
        browser.open(url)
        for robot in ('r0', 'r1'):
            served = f"{row(robot)}?.querySelector('.latency').textContent.match(/^[0-9]/)"
            browser.until(served, f'{robot} is served')
        graph.until(lambda: units(url) != [], 'the engine tells of its lanes')  # with each beat
        robots[1].kill()
        silent = f"{row('r1')}.querySelector('.why').textContent.includes('silent')"
        browser.until(silent, 'r1 is silent')
        assert browser.value(f'{row("r1")}.dataset.level') == 'ERROR'
        red = browser.value(f"getComputedStyle({row('r1')}.querySelector('.robot')).color")
        assert red == 'rgb(194, 32, 44)'
        assert browser.complaints() == []
