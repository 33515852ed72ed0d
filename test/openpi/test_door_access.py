# SPDX-License-Identifier: Apache-2.0
"""Who may come in by the websocket door, where it listens, and that nothing sent is executed."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
import pytest
from engine.canary import Canary
from engine.scripted_engine import Bench
from websockets.exceptions import InvalidStatus

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.engine.answer_router import AnswerRouter
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.openpi.packer import pack
from xinfer_ros.openpi.robot_session import RobotSession
from xinfer_ros.openpi.settings import DoorSettings, listen
from xinfer_ros.openpi.unpacker import UnreadableMessage, unpack

from .door_bench import ROWS, SETTINGS, WAIT_S, DoorBench, observation

KEY = {'Authorization': 'Api-Key secret'}


def _refusal(bench: DoorBench, **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        bench.connect(**options)
    response = refused.value.response
    return response.status_code, bytes(response.body or b'').decode()


def test_a_token_is_asked_for_and_nothing_else_will_do() -> None:
    with DoorBench(token='secret') as bench:
        for given in ({}, {'Authorization': 'secret'}, {'Authorization': 'Api-Key secreT'},
                      {'Authorization': 'Api-Key \u00fc'}):  # fmt: skip
            status, text = _refusal(bench, additional_headers=given)
            assert (status, text) == (
                401, 'the token of this server is needed: give it as api_key\n',
            )  # fmt: skip
        assert bench.robot(additional_headers=KEY).metadata['model'] == 'scripted'


def test_a_web_page_must_not_drive_a_robot() -> None:
    with DoorBench() as bench:
        assert _refusal(bench, origin='http://example.org')[0] == 403


def test_no_more_robots_connect_than_are_allowed() -> None:
    with DoorBench(max_robots=2) as bench:
        robots = [bench.robot() for _ in range(2)]
        status, text = _refusal(bench)
        assert status == 503
        assert '2 robots are connected; websocket_robots is 2' in text
        assert len(robots) == 2


def test_a_robot_that_takes_nothing_is_given_up_and_holds_up_no_other() -> None:
    """A lease after its last byte went; the others are asked whether they live as ever."""
    with DoorBench(lease_ns=1_000_000_000) as bench, socket.socket() as deaf:
        other = bench.robot()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(WAIT_S)
        deaf.connect((bench.host, bench.port))
        deaf.sendall(
            b'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
            b'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
        )
        pings = (b'\x89\xfd' + bytes(4) + bytes(125)) * 100_000  # each wants a pong as long
        with pytest.raises(ConnectionError):
            deaf.sendall(pings)
        other.send(observation())
        bench.engine.finish(bench.engine.next_request(), ROWS)
        assert other.answer()['xinfer']['request_id'] == 1


def _get(bench: DoorBench, path: str) -> tuple[int, str, dict[str, str]]:
    url = f'http://{bench.host}:{bench.port}{path}'
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return response.status, response.read().decode(), dict(response.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def test_its_health_is_that_of_the_server() -> None:
    with DoorBench(ready=False) as bench:
        status, text, _ = _get(bench, '/healthz')
        assert (status, text[:10]) == (503, 'NOT_READY:')
        bench.engine.become_ready(7)
        status, text, headers = _get(bench, '/healthz')
        assert (status, text) == (200, 'OK\n')
        assert headers['Server'] == 'xinfer_ros'


def test_whoever_speaks_no_websocket_is_told_so_and_nothing_of_the_machine() -> None:
    """SE-02."""
    with DoorBench() as bench:
        status, text, headers = _get(bench, '/x?y=../../etc')
        assert status == 426
        assert text == "a websocket is needed: this port speaks openpi's protocol\n"
        assert headers['Server'] == 'xinfer_ros'
        with socket.create_connection((bench.host, bench.port), timeout=20) as other:
            other.sendall(b'nonsense\r\n\r\n')
            answer = other.recv(4096).decode()
        assert ' 400 ' in answer
        assert 'Traceback' not in answer
        assert '.py' not in answer


@pytest.mark.parametrize('host', ['127.0.0.1', '127.0.0.2', '::1'])
def test_it_listens_where_it_was_told_to_and_nowhere_else(host: str) -> None:
    """SE-02: by default on this machine alone; the host that is set is obeyed."""
    with DoorBench(host=host) as bench:
        assert bench.host == host
        listening = [
            connection.laddr
            for connection in psutil.Process().net_connections('tcp')
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == bench.port
        ]
        assert listening == [(host, bench.port)]


def test_by_default_the_door_is_closed_and_would_be_open_to_this_machine_alone() -> None:
    """SE-02."""
    assert DoorSettings.from_config(ServerConfig()) is None
    opened = DoorSettings.from_config(ServerConfig(websocket_port=8000))
    assert opened is not None
    assert (opened.host, opened.max_bytes) == ('127.0.0.1', 16_000_000)


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '', '192.168.1.5', 'robots.example'])
def test_a_door_for_other_machines_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match='websocket_token is empty; set a token'):
        ServerConfig(websocket_port=8000, websocket_host=host)
    ServerConfig(websocket_port=8000, websocket_host=host, websocket_token='x' * 16)
    ServerConfig(websocket_host=host)  # closed


def test_a_key_without_a_name_is_refused_at_the_start() -> None:
    for entry in ('image', '=top', 'image='):
        with pytest.raises(ConfigError, match='KEY=NAME is needed'):
            DoorSettings.from_config(ServerConfig(websocket_keys=(entry,)))
    settings = DoorSettings.from_config(
        ServerConfig(websocket_port=8000, websocket_keys=('a=b=top',))
    )
    assert settings is not None
    assert settings.keys == (('a=b', 'top'),)


def test_a_port_that_is_taken_is_told_at_the_start() -> None:
    with DoorBench() as bench:
        with pytest.raises(ConfigError, match='can not be listened on: Address already in use'):
            listen(replace(SETTINGS, port=bench.port))
        with pytest.raises(ConfigError, match='choose another port'):
            listen(replace(SETTINGS, host='no such host'))


class Kept:
    """An outlet that keeps what it gets."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def publish(self, answer: Answer) -> None:
        """Keep an answer."""
        self.answers.append(answer)

    def close(self) -> None:
        """Do nothing."""


def _array(data: object, dtype: object = '|u1', shape: object = (4, 4, 3)) -> dict[bytes, object]:
    return {b'__ndarray__': True, b'data': data, b'dtype': dtype, b'shape': shape}


# where a payload goes, as the key of an observation and its value
PLACES: dict[str, tuple[str, Callable[[bytes], object]]] = {
    'picture': ('images', lambda data: {'top': data}),
    'state': ('state', lambda data: data),
    'prompt': ('prompt', lambda data: b'\xff' + data),
    'pixels': ('images', lambda data: {'top': _array(data)}),
    'objects': ('images', lambda data: {'top': _array(data, '|O', [1])}),
    'dtype': ('state', lambda data: _array(data, data)),
    'shape': ('state', lambda data: _array(data, shape=data)),
    'text': ('state', lambda data: data.decode('latin-1')),
    'wishes': ('xinfer', lambda data: data),
    'robot_id': ('xinfer', lambda data: {'robot_id': data}),
    'leftover': ('xinfer', lambda data: {'leftover': data}),
}
FIELDS_OF_BYTES = ('picture', 'state', 'prompt')
GOOD = {key: pack(key) + pack(value) for key, value in observation().items()}


def _messages(number: int, payload: bytes) -> Iterator[bytes]:
    """
    Yield observations with a payload in one place each, in the tail, and in place of the whole.

    Fields of bytes and the whole are tried with every payload, the others with every tenth.
    """
    yield payload
    if number % 10 == 0:
        yield pack(observation()) + payload
    for name, (key, value) in PLACES.items():
        if name in FIELDS_OF_BYTES or number % 10 == 0:
            entries = GOOD | {key: pack(key) + msgpack.packb(value(payload))}
            yield bytes([0x80 | len(entries)]) + b''.join(entries.values())


@pytest.mark.slow
def test_no_bytes_from_a_websocket_are_ever_executed(tmp_path: Path) -> None:
    """SE-01 at this door: crafted and 10,000 random payloads in each place; each is rejected."""
    bench, outlet, router = Bench(), Kept(), AnswerRouter()
    bench.engine.become_ready(7)
    canary = Canary(tmp_path / 'canary')
    crafted = canary.payloads
    random = np.random.default_rng(17)
    session = RobotSession(SETTINGS, bench.front_end, router, bench.clock, 'r0', 1, lambda: outlet)
    sent = unreadable = 0
    for number in range(10_000):
        payload = crafted[number] if number < len(crafted) else random.bytes(1 + number % 40)
        for message in _messages(number, payload):
            sent += 1
            try:
                value = unpack(message)
                if not isinstance(value, dict):  # as the connection refuses it
                    raise UnreadableMessage('no dictionary')
                session.ask(value, bench.clock.now_ns())
            except (UnreadableMessage, Rejected):
                unreadable += 1
    assert len(bench.answers) + unreadable == sent
    assert all(answer.reason is not Reason.OK for _, answer in bench.answers)
    assert not bench.engine.submitted()
    canary.check()
