# SPDX-License-Identifier: Apache-2.0
"""The HTTP server as a server node opens it."""

import json
import socket
import urllib.request

import pytest

pytest.importorskip('aiohttp', reason='no aiohttp: extra server is not installed')

from observe.viewed_fleet import ViewedFleet

from xinfer_ros.config import ServerConfig
from xinfer_ros.observe.http_server import HttpServer
from xinfer_ros.ros.page_opener import PageOpener


def test_what_the_server_has_counted_is_served_at_the_port_of_the_settings() -> None:
    fleet = ViewedFleet()
    fleet.serve(fleet.robot('r0'), 1, ms=40.0)
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    opener = PageOpener(ServerConfig(http_port=port), fleet.view)
    (server,) = opener(fleet.bench.front_end)
    assert isinstance(server, HttpServer)
    url = server.url()
    assert url == f'http://127.0.0.1:{port}/'
    with urllib.request.urlopen(f'{url}snapshot.json') as answer:
        snapshot = json.load(answer)
    assert [robot['robot_id'] for robot in snapshot['robots']] == ['r0']
    assert snapshot['robots'][0]['responses'] == 1
    with urllib.request.urlopen(f'{url}metrics') as answer:
        assert b'\nxinfer_robots 1.0\n' in answer.read()
    server.close()


def test_port_0_is_none() -> None:
    fleet = ViewedFleet()
    assert PageOpener(ServerConfig(http_port=0), fleet.view)(fleet.bench.front_end) == []
