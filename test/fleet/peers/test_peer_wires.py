# SPDX-License-Identifier: Apache-2.0
"""The wires of the peers: what is asked comes back with its mark, whatever the kernel cuts."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgpack
import numpy as np
import pytest

from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.fleet.peers import floor_server, openpi_server
from xinfer_ros.fleet.peers.peer_links import FloorLink, OpenpiLink, PeerLink
from xinfer_ros.fleet.peers.peer_requests import MARK, Mark, PeerRequests
from xinfer_ros.openpi.unpacker import unpack

EPISODES = Path(__file__).parents[3] / 'episodes'
SERVERS = {'floor': floor_server.listen, 'openpi': openpi_server.listen}
WAIT_S = 20.0


@pytest.fixture(scope='module')
def requests() -> PeerRequests:
    """Give the requests of a shipped episode."""
    return PeerRequests(find_episode('transfer_cube_0', EPISODES).read())


def test_a_request_is_an_observation_of_openpi_with_raw_pictures(requests: PeerRequests) -> None:
    mark = Mark(robot=3, request_id=2**40)
    read = unpack(requests.request(0, mark))
    assert isinstance(read, dict)
    assert sorted(read) == ['images', MARK, 'prompt', 'state']
    images = read['images']
    assert isinstance(images, dict)
    assert sorted(images) == ['left_wrist', 'right_wrist', 'top']
    for picture in images.values():
        assert isinstance(picture, np.ndarray)
        assert picture.dtype == np.uint8
        assert picture.shape[2] == 3
    assert isinstance(read[MARK], memoryview)
    assert Mark.unpacked(bytes(read[MARK])) == mark
    other = requests.request(1, mark)
    assert other != requests.request(0, mark)
    assert unpack(requests.request(16, mark)) is not None  # it begins anew behind the last one


async def _asked(
    system: str, requests: PeerRequests, robots: int, rounds: int
) -> list[list[Mark]]:
    """Let robots send their rounds at once, and return the marks that each gets."""
    port = await SERVERS[system](0.0)
    got: list[list[Mark | None]] = [[] for _ in range(robots)]
    all_there = asyncio.Event()

    def taker(place: int) -> Callable[[Mark | None], None]:
        def take(mark: Mark | None) -> None:
            got[place].append(mark)
            if sum(map(len, got)) == robots * rounds:
                all_there.set()

        return take

    def link(place: int) -> PeerLink:
        take = taker(place)
        return FloorLink(take) if system == 'floor' else OpenpiLink(port, take)

    loop = asyncio.get_running_loop()
    links = []
    for place in range(robots):
        _, made = await loop.create_connection(lambda place=place: link(place), '127.0.0.1', port)
        await asyncio.wait_for(made.ready, WAIT_S)
        links.append(made)
    for turn in range(rounds):
        for place, made in enumerate(links):
            mark = Mark(robot=place, request_id=turn)
            made.send(requests.request(turn, mark), mark)
    await asyncio.wait_for(all_there.wait(), WAIT_S)
    return [[mark for mark in marks if mark is not None] for marks in got]


@pytest.mark.parametrize('system', SERVERS)
def test_every_request_is_answered_with_its_own_mark_in_turn(
    system: str, requests: PeerRequests
) -> None:
    """A robot that gives a request up sends the next one behind it: the wire keeps its step."""
    marks = asyncio.run(_asked(system, requests, robots=3, rounds=4))
    assert marks == [
        [Mark(robot=place, request_id=turn) for turn in range(4)] for place in range(3)
    ]


async def _websocket_answer(requests: PeerRequests) -> bytes:
    from websockets.asyncio.client import connect

    port = await openpi_server.listen(0.0)
    async with connect(f'ws://127.0.0.1:{port}', max_size=None) as connection:
        assert msgpack.unpackb(await connection.recv()) == {}
        await connection.send(requests.request(0, Mark(robot=1, request_id=2)))
        answer = await asyncio.wait_for(connection.recv(), WAIT_S)
    assert isinstance(answer, bytes)
    return answer


def test_the_openpi_loop_answers_a_chunk_and_how_long_its_model_took(
    requests: PeerRequests,
) -> None:
    answer = unpack(asyncio.run(_websocket_answer(requests)))
    assert isinstance(answer, dict)
    assert isinstance(answer['actions'], np.ndarray)
    assert answer['actions'].shape == (50, 14)
    timing = answer['server_timing']
    assert isinstance(timing, dict)
    assert isinstance(timing['infer_ms'], float)


def test_a_mark_of_another_length_is_none() -> None:
    assert Mark.unpacked(b'') is None
    assert Mark.unpacked(bytes(17)) is None
