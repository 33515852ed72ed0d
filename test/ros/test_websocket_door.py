# SPDX-License-Identifier: Apache-2.0
"""The unmodified openpi-client drives a robot through the server node, beside one over ROS."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest
import torch
from lifecycle_msgs.msg import Transition
from openpi.client_venv import client_environment, client_python
from robot.in_process_server import InProcessServer
from websockets.sync.client import connect

from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import make_model
from xinfer_ros.openpi.unpacker import unpack
from xinfer_ros.ros import convert

from .graph import Graph
from .scripted_robot import CONTRACT, SPACING_NS, ScriptedRobot

DRIVER = Path(__file__).parents[1] / 'openpi' / 'drive_robot.py'
CAMERAS = tuple(camera.name for camera in CONTRACT.cameras)
COUNT = 3
PROMPT = 'transfer the cube'


def _free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _inputs() -> dict[str, Any]:
    random = np.random.default_rng(5)
    images = {
        f'image_{name}': random.integers(0, 256, (COUNT, 112, 160, 3), np.uint8)
        for name in CAMERAS
    }
    return {'state': random.uniform(-1, 1, (COUNT, 14)), 'prompt': PROMPT, **images}


class Asked:
    """
    The observations of the openpi robot, as any other door would take them.

    :param inputs: of the robot
    """

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._inputs = inputs

    def observation(self, row: int, session: int, request_id: int) -> Observation:
        """Return an observation in plain values."""
        return Observation(
            session=session,
            episode=0,
            request_id=request_id,
            executed_steps=0,
            instruction=PROMPT,
            joint_names=CONTRACT.joint_names,
            state=self._inputs['state'][row].astype(np.float32),
            images=tuple(self._frame(name, row) for name in CAMERAS),
            budget_ns=5_000_000_000,
            minimum_period_ns=180_000_000,
            commitment_steps=0,
            keyframe_spacing_ns=SPACING_NS,
            leftover=np.zeros((0, 14), np.float32),
        )

    def _frame(self, name: str, row: int) -> CameraFrame:
        picture = self._inputs[f'image_{name}'][row]
        return CameraFrame(
            name=name,
            compressed=False,
            encoding='rgb8',
            height=picture.shape[0],
            width=picture.shape[1],
            step=3 * picture.shape[1],
            is_bigendian=False,
            data=picture.tobytes(),
        )


class Offline:
    """The same model without any door."""

    def __init__(self) -> None:
        torch.set_num_threads(1)  # several wait for each other beside a server on few cores
        self._server = InProcessServer(make_model('tiny'))
        self._server.model.warm_up()

    def rows(self, name: str, observation: Observation) -> npt.NDArray[np.float32]:
        """Return the rows for an observation; noise depends on its session and request."""
        robot = self._server.register(robot_id=name, namespace=f'/{name}',
                                      keyframe_spacing_ns=SPACING_NS)  # fmt: skip
        robot.session = observation.session
        return self._server.answer(robot, observation).rows


def _over_ros(robot: ScriptedRobot, asked: Asked, row: int) -> tuple[int, npt.NDArray[np.float32]]:
    """Return the request id and the rows that a robot over ROS gets."""
    message = robot.observation()
    plain = asked.observation(row, robot.session, message.request_id)
    message.state = convert.float_array(plain.state)
    message.instruction, message.joint_names = PROMPT, list(plain.joint_names)
    for place, frame in enumerate(plain.images):
        sent = message.images[place]
        sent.name, sent.compressed, sent.encoding = frame.name, False, 'rgb8'
        sent.height, sent.width, sent.step = frame.height, frame.width, frame.step
        sent.data = convert.byte_array(frame.data)
    chunk = robot.answer_to(robot.send(message))
    assert (chunk.reason, chunk.detail) == (Reason.OK, '')
    rows = np.array(chunk.rows, np.float32).reshape(chunk.num_rows, -1)
    return message.request_id, rows


@pytest.mark.slow
@pytest.mark.timeout(300)  # the first run installs openpi-client
def test_openpi_client_gets_the_actions_that_a_robot_over_ros_gets(
    graph: Graph, tmp_path: Path
) -> None:
    """SL-08 for the second door: the same observation, the same actions, whichever way it came."""
    python, port, inputs = client_python(), _free_port(), _inputs()
    server = graph.server(
        '-p', 'model:=tiny', '-p', 'spare_engine:=false', '-p', 'lease_s:=30.0',
        '-p', f'websocket_port:={port}', '-p', 'websocket_budget_s:=5.0',
    )  # fmt: skip
    given, result = tmp_path / 'given.npz', tmp_path / 'result.npz'
    np.savez(given, **inputs)
    offline, asked = Offline(), Asked(inputs)  # loads while the server does
    graph.until(lambda: _is_open(port), 'the door is open')  # else the client waits 5 s
    done = subprocess.run(
        [str(python), str(DRIVER), str(port), str(given), str(result)],
        env=client_environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + server.output
    found = np.load(result)
    assert str(found['numpy']).startswith('1.')
    assert tuple(found['joint_names']) == CONTRACT.joint_names
    assert 'MISSING_CAMERA: camera top: needed is images/top' in str(found['error'])
    assert found['steps'].shape == (8, 14)
    assert found['again'].shape == (CONTRACT.horizon, 14)
    assert (found['infer_ms'] > 0).all()

    beside = ScriptedRobot(graph, 'r0')
    beside.register()
    for row in range(COUNT):
        request_id, actions = _over_ros(beside, asked, row)
        plain = asked.observation(row, beside.session, request_id)
        np.testing.assert_allclose(actions, offline.rows('ros', plain), atol=1e-5)
        plain = asked.observation(row, int(found['session']), int(found['request_ids'][row]))
        actions = found['actions'][row]
        np.testing.assert_allclose(actions, offline.rows('websocket', plain), atol=1e-5)


def test_every_port_of_the_server_node_is_of_this_machine_alone(graph: Graph) -> None:
    """SE-02: by default, websocket door and HTTP server bind 127.0.0.1 and nothing else."""
    ports = [_free_port(), _free_port()]
    server = graph.server('-p', f'websocket_port:={ports[0]}', '-p', f'http_port:={ports[1]}')
    ScriptedRobot(graph, 'r0').register()
    listening = {
        connection.laddr
        for connection in psutil.Process(server.process.pid).net_connections('tcp')
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {('127.0.0.1', port) for port in ports}


def test_a_door_that_can_not_be_opened_stops_the_start(graph: Graph) -> None:
    """A robot over a websocket would wait for ever."""
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        server = graph.server('-p', f'websocket_port:={port}')
        assert server.process.wait(30) == 2
    assert f'websocket_port {port} can not be listened on' in server.output
    refused = graph.server('-p', 'websocket_port:=8000', '-p', 'websocket_host:=0.0.0.0')
    assert refused.process.wait(30) == 2
    assert 'websocket_token is empty; set a token' in refused.output


def _is_open(port: int) -> bool:
    with socket.socket() as knocking:
        return knocking.connect_ex(('127.0.0.1', port)) == 0


def _told(port: int) -> dict[str, Any]:
    """Return the metadata of the door; a robot waits for it."""
    with connect(f'ws://127.0.0.1:{port}', open_timeout=60) as connection:
        message = connection.recv(timeout=30)
    assert isinstance(message, bytes)
    told = unpack(message)
    assert isinstance(told, dict)
    return told


def test_the_door_opens_again_when_the_node_is_configured_again(graph: Graph) -> None:
    port = _free_port()
    graph.server('-p', f'websocket_port:={port}')
    graph.until(lambda: _is_open(port), 'the door is open')
    before = _told(port)
    graph.transition(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)
    with pytest.raises(ConnectionRefusedError), connect(f'ws://127.0.0.1:{port}'):
        pass
    graph.transition(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
    after = _told(port)
    assert after['model'] == before['model'] == 'echo'
    assert after['xinfer']['epoch'] != before['xinfer']['epoch']
