# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of the live page: what it answers to whom."""

import asyncio
import base64
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip('aiohttp', reason='no aiohttp: extra server is not installed')

from aiohttp.test_utils import TestClient, TestServer

from xinfer_ros.config import ServerConfig
from xinfer_ros.config.bounds import is_loopback
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import ConfigError
from xinfer_ros.observe.http_access import HttpAccess
from xinfer_ros.observe.http_routes import application
from xinfer_ros.observe.http_server import OTHERS, HttpServer, HttpSettings
from xinfer_ros.observe.page_feed import PageFeed

from .scripted_fleet import ScriptedFleet

WEB = Path(__file__).parents[2] / 'web'
TOKEN = 'a token of some length'


def metrics_of_nothing(now_ns: int) -> bytes:
    return b'xinfer_robots 4\n'


def settings(**changes: object) -> HttpSettings:
    fields = {'host': '127.0.0.1', 'port': 0, 'token': '', 'max_watchers': 2, 'page': WEB}
    return HttpSettings(**(fields | changes))  # type: ignore[arg-type]


@contextmanager
def served(
    fleet: ScriptedFleet,
    metrics: Callable[[int], bytes] = metrics_of_nothing,
    **changes: object,
) -> Iterator[http.client.HTTPConnection]:
    """Give a connection to a server of this fleet."""
    server = HttpServer(settings(**changes), fleet, metrics, MonotonicClock(), fleet.watch)
    try:
        url = server.url()
        assert url is not None
        connection = http.client.HTTPConnection(url.split('/')[2], timeout=10)
        yield connection
        connection.close()
    finally:
        server.close()


def ask(
    connection: http.client.HTTPConnection, path: str, **headers: str
) -> http.client.HTTPResponse:
    connection.request('GET', path, headers={k.replace('_', '-'): v for k, v in headers.items()})
    return connection.getresponse()


def event(response: http.client.HTTPResponse) -> dict:
    line = response.readline()
    response.readline()
    assert line.startswith(b'data:')
    return json.loads(line.removeprefix(b'data:'))


def test_the_page_and_its_files_are_served_and_nothing_else() -> None:
    with served(ScriptedFleet(4)) as connection:
        page = ask(connection, '/')
        assert page.status == 200
        assert 'xinfer_ros' in page.read().decode()
        assert "script-src 'self'" in page.headers['Content-Security-Policy']
        assert page.headers['Server'] == 'xinfer_ros'
        script = ask(connection, '/app.js')
        assert script.headers['Content-Type'].startswith('text/javascript')
        assert script.read()
        for path in ('/package.json', '/../setup.py', '/%2e%2e/setup.py', '/vendor/', '/x'):
            missing = ask(connection, path)
            assert (missing.status, missing.read()) == (404, b'Not Found\n'), path


def test_snapshot_metrics_and_health_are_served() -> None:
    fleet = ScriptedFleet(4)
    with served(fleet) as connection:
        snapshot = json.loads(ask(connection, '/snapshot.json').read())
        assert [robot['robot_id'] for robot in snapshot['robots']] == ['r0', 'r1', 'r2', 'r3']
        assert snapshot['fleet']['epoch'] == '1789000000123456789'
        metrics = ask(connection, '/metrics')
        assert metrics.read() == b'xinfer_robots 4\n'
        assert metrics.headers['Content-Type'].startswith('text/plain; version=0.0.4')
        healthy = ask(connection, '/healthz')
        assert (healthy.status, healthy.read()) == (200, b'READY\n')
        fleet.state = ServerPhase.ERROR
        ill = ask(connection, '/healthz')
        assert (ill.status, ill.read()) == (503, b'ERROR\n')


def test_a_fault_is_in_the_log_and_not_in_the_answer(caplog) -> None:
    """SE-02: no path and no traceback reaches whoever asks."""

    def faulty(now_ns: int) -> bytes:
        raise RuntimeError('secret path /opt/model')

    with served(ScriptedFleet(1), faulty) as connection:
        answer = ask(connection, '/metrics')
        text = answer.read().decode()
    assert answer.status == 500
    assert text == 'A fault of the server; its log has it.\n'
    assert 'secret path' in caplog.text


@pytest.mark.parametrize('host', ['evil.example', 'evil.example:8320', '192.0.2.7', ''])
def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    """SE-02: a web page that has its name resolved to this machine reads nothing."""
    with served(ScriptedFleet(1)) as connection:
        for path in ('/', '/snapshot.json', '/metrics'):
            answer = ask(connection, path, Host=host)
            answer.read()
            assert answer.status == 421
        assert ask(connection, '/snapshot.json', Host='localhost:9000').status == 200


def test_another_site_gets_no_data() -> None:
    with served(ScriptedFleet(1)) as connection:
        for site in ('cross-site', 'same-site'):
            for mode, kind in (('cors', 'empty'), ('no-cors', 'script'), ('navigate', 'iframe')):
                asked = {'Sec_Fetch_Site': site, 'Sec_Fetch_Mode': mode, 'Sec_Fetch_Dest': kind}
                answer = ask(connection, '/snapshot.json', **asked)
                answer.read()
                assert answer.status == 403, asked


def test_a_link_of_another_site_leads_to_the_page() -> None:
    followed = {'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'navigate'}
    with served(ScriptedFleet(1)) as connection:
        assert ask(connection, '/', **followed, Sec_Fetch_Dest='document').status == 200


def test_a_token_is_asked_for_where_there_is_one() -> None:
    with served(ScriptedFleet(1), token=TOKEN) as connection:
        for wrong in (
            '',
            'Bearer',
            f'Bearer {TOKEN}x',
            'Basic !',
            f'Basic {TOKEN}',
            'Bearer \xe9',
        ):
            refused = ask(connection, '/snapshot.json', Authorization=wrong)
            refused.read()
            assert refused.status == 401, wrong
            assert refused.headers['WWW-Authenticate'].startswith('Basic ')
        basic = base64.b64encode(f'anybody:{TOKEN}'.encode()).decode()
        for right in (f'Bearer {TOKEN}', f'Basic {basic}'):
            answer = ask(connection, '/snapshot.json', Authorization=right)
            answer.read()
            assert answer.status == 200
        assert ask(connection, '/metrics').status == 200


def test_beyond_this_machine_there_is_no_page_without_a_token() -> None:
    """SE-02: off by default outside localhost; what Prometheus reads is there."""

    async def statuses() -> dict[str, int]:
        fleet, clock = ScriptedFleet(1), MonotonicClock()
        feed = PageFeed(fleet, clock, fleet.watch)
        access = HttpAccess(host='0.0.0.0')
        app = application(access, settings(), feed, metrics_of_nothing, clock)
        async with TestClient(TestServer(app)) as client:
            paths = ('/', '/app.js', '/events', '/snapshot.json', '/metrics', '/healthz')
            return {path: (await client.get(path)).status for path in paths}

    found = asyncio.run(statuses())
    assert found.pop('/metrics') == found.pop('/healthz') == 200
    assert set(found.values()) == {403}


def test_defaults_are_this_machine_alone_and_a_short_token_is_refused() -> None:
    """SE-02."""
    assert is_loopback(ServerConfig().http_host)
    for token in ('http_token', 'websocket_token'):
        with pytest.raises(ConfigError, match=f'{token} has 4 characters and could be guessed'):
            ServerConfig(**{token: '1234'})  # type: ignore[arg-type]


def test_a_page_gets_the_whole_and_then_what_is_new() -> None:
    fleet = ScriptedFleet(3)
    with served(fleet) as connection:
        first = ask(connection, '/events')
        assert first.headers['Content-Type'] == 'text/event-stream'
        whole, update = event(first), event(first)
        assert len(whole['history']) >= 1
        assert update['history'] == []
        assert update['now_ms'] > whole['now_ms']
        assert 2 * len(update['timeline']['units']) < len(whole['timeline']['units'])
        assert fleet.watched == [True]


def test_watchers_are_bounded_and_the_engine_is_told_of_the_last_that_leaves() -> None:
    fleet = ScriptedFleet(1)
    with served(fleet, max_watchers=1) as connection:
        event(ask(connection, '/events'))
        second = http.client.HTTPConnection(connection.host, connection.port, timeout=10)
        refused = ask(second, '/events')
        assert refused.status == 503
        assert b'http_watchers' in refused.read()
        second.close()
    assert fleet.watched == [True, False]


def test_callers_that_only_keep_a_place_leave_files_for_the_rest_of_the_server() -> None:
    with served(ScriptedFleet(1), max_watchers=1) as connection, ExitStack() as open_:
        address = (connection.host, connection.port)
        silent = [
            open_.enter_context(socket.create_connection(address, timeout=10))
            for _ in range(2 * (1 + OTHERS))
        ]
        assert silent[-1].recv(1) == b''  # closed


def test_a_taken_port_is_one_warning(caplog) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        fleet = ScriptedFleet(1)
        server = HttpServer(
            settings(port=port), fleet, metrics_of_nothing, MonotonicClock(), fleet.watch
        )
        assert server.url() is None
        server.close()
    assert [record.levelname for record in caplog.records] == ['WARNING']
    assert f'127.0.0.1:{port}' in caplog.text
    assert 'Robots are served all the same' in caplog.text


def test_a_missing_page_is_told(caplog, tmp_path) -> None:
    fleet = ScriptedFleet(1)
    server = HttpServer(
        settings(page=tmp_path), fleet, metrics_of_nothing, MonotonicClock(), fleet.watch
    )
    assert server.url() is None
    server.close()
    assert 'make setup' in caplog.text
