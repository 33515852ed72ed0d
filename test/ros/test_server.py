# SPDX-License-Identifier: Apache-2.0
"""The server node over the wire."""

import random
from array import array
from collections import Counter

import numpy as np
import psutil
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from rclpy.qos import QoSProfile, ReliabilityPolicy

from xinfer_ros.errors import Reason
from xinfer_ros.msg import Observation, ServerState
from xinfer_ros.ros import qos

from .graph import Graph
from .scripted_robot import CONTRACT, ScriptedRobot


def test_a_robot_gets_a_chunk_computed_from_its_own_observation(graph: Graph) -> None:
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    chunk = robot.ask(level=200, state=0.5, episode=3, executed_steps=17)
    assert (chunk.reason, chunk.detail) == (Reason.OK, '')
    assert (chunk.session, chunk.episode, chunk.start_step) == (robot.session, 3, 17)
    assert chunk.epoch == robot.epoch
    assert tuple(chunk.joint_names) == CONTRACT.joint_names
    rows = np.array(chunk.rows).reshape(chunk.num_rows, -1)
    assert rows.shape == (CONTRACT.horizon, CONTRACT.action_dim)
    np.testing.assert_allclose(rows[:, 0], 0.5 + 1e-3 * np.arange(CONTRACT.horizon), atol=1e-5)
    assert rows[0, -1] == pytest.approx(200 / 255, abs=0.02)
    parts = chunk.decode_ns + chunk.queue_ns + chunk.vit_ns + chunk.prefill_ns + chunk.action_ns
    assert 0 < parts <= chunk.server_ns


def test_joints_are_assigned_by_name_whatever_their_order(graph: Graph) -> None:
    """CQ-11 at the server: a robot with another joint order gets its own order back."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    names = list(reversed(CONTRACT.joint_names))
    robot.register(joint_names=names)
    state = array('f', np.arange(len(names), dtype=np.float32))
    chunk = robot.ask(joint_names=names, state=0.0, executed_steps=0, leftover_steps=0)
    assert chunk.reason == Reason.OK
    message = robot.observation(joint_names=names)
    message.state = state
    chunk = robot.answer_to(robot.send(message))
    rows = np.array(chunk.rows).reshape(chunk.num_rows, -1)
    assert list(chunk.joint_names) == names
    # the echo model's last column, which shows the picture, is the robot's first
    np.testing.assert_allclose(rows[0, 1:], np.array(state)[1:], atol=1e-5)


def test_frozen_rows_come_back_unchanged_and_the_limit_is_told(graph: Graph) -> None:
    """RT-02: a first request without a leftover; d below, at and above the limit of the model."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    leftover = np.random.default_rng(0).normal(size=(10, CONTRACT.action_dim)).astype(np.float32)
    assert CONTRACT.max_commitment_steps == 8
    for commitment, frozen, degraded in ((0, 0, False), (6, 6, False), (8, 8, True), (9, 8, True)):
        chunk = robot.ask(
            leftover_steps=10,
            leftover=array('f', leftover.tobytes()),
            commitment_steps=commitment,
        )
        rows = np.array(chunk.rows, np.float32).reshape(chunk.num_rows, -1)
        assert (chunk.frozen_steps, chunk.degraded) == (frozen, degraded)
        np.testing.assert_array_equal(rows[:frozen], leftover[:frozen])
        assert (rows[frozen] != leftover[frozen]).any()
    first = robot.ask(commitment_steps=6)
    assert (first.reason, first.frozen_steps, first.degraded) == (Reason.OK, 0, False)


def test_every_bad_observation_is_answered_with_its_reason(graph: Graph) -> None:
    """SC-05 for budgets: 0, −1 and absurd ones."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    nan = array('f', [float('nan')] * CONTRACT.action_dim)
    short = array('f', [0.0] * 5)
    picture, joints = robot.observation().images, CONTRACT.action_dim
    bad = {
        'a wrong session': ({'session': 1}, Reason.UNKNOWN_SESSION),
        'a state that is not finite': ({'state': nan}, Reason.REJECTED_STATE),
        'a state of another width': ({'state': short}, Reason.REJECTED_STATE),
        'other joints': ({'joint_names': ['a', 'b']}, Reason.REJECTED_STATE),
        'no budget': ({'budget_ns': 0}, Reason.REJECTED_BUDGET),
        'a negative budget': ({'budget_ns': -1}, Reason.REJECTED_BUDGET),
        'an absurd budget': ({'budget_ns': 10**18}, Reason.REJECTED_BUDGET),
        'more than a minute': ({'budget_ns': 60_000_000_001}, Reason.REJECTED_BUDGET),
        'no period': ({'minimum_period_ns': 0}, Reason.REJECTED_PERIOD),
        'another spacing': ({'keyframe_spacing_ns': 1}, Reason.REJECTED_SPACING),
        'a leftover that does not fit': ({'leftover_steps': 3}, Reason.REJECTED_LEFTOVER),
        'more frozen rows than leftover': (
            {'commitment_steps': 2, 'leftover_steps': 1, 'leftover': array('f', [0.0] * joints)},
            Reason.REJECTED_COMMITMENT,
        ),
        'too long an instruction': ({'instruction': 'x' * 9000}, Reason.REJECTED_INSTRUCTION),
        'a missing camera': ({'images': picture[:2]}, Reason.MISSING_CAMERA),
    }
    for what, (changes, reason) in bad.items():
        message = robot.observation()
        for name, value in changes.items():
            setattr(message, name, value)
        chunk = robot.answer_to(robot.send(message))
        assert chunk.reason == reason, what
        assert (chunk.num_rows, len(chunk.rows)) == (0, 0)
        assert chunk.detail
    repeated = robot.observation()
    assert robot.answer_to(robot.send(repeated)).reason == Reason.OK
    robot.chunks.clear()
    robot.send(repeated)
    assert robot.answer_to(repeated.request_id).reason == Reason.REJECTED_ORDER


def test_bad_pictures_are_refused_and_the_other_robot_is_served(graph: Graph) -> None:
    """TR-07: unknown, empty and corrupt pictures get a reason; a neighbour gets its chunks."""
    graph.server()
    good, bad = ScriptedRobot(graph, 'good'), ScriptedRobot(graph, 'bad')
    good.register()
    bad.register()
    for data, encoding, compressed in (
        (b'', 'jpeg', True),
        (b'\xff\xd8\xff' + bytes(500), 'jpeg', True),
        (bytes(48 * 64 * 3), 'bayer_rggb8', False),
        (bytes(48 * 64 * 3), 'something', False),
        (bytes(7), 'rgb8', False),
    ):
        message = bad.observation()
        for frame in message.images:
            frame.data, frame.encoding, frame.compressed = array('B', data), encoding, compressed
            frame.height, frame.width, frame.step = 48, 64, 192
        request = bad.send(message)
        assert good.ask(level=90).reason == Reason.OK
        answer = bad.answer_to(request)
        assert answer.reason == Reason.REJECTED_IMAGE
        assert 'camera top' in answer.detail


class Asker:
    """
    A robot whose every question is known, so that every answer can be checked.

    :param robot: who asks
    :param level: grey level of its pictures, which no other robot sends
    :param chance: draws its states
    """

    def __init__(self, robot: ScriptedRobot, level: int, chance: random.Random) -> None:
        self._robot, self._level, self._chance = robot, level, chance
        self._asked: dict[int, tuple[int, float]] = {}
        self.episode = 0
        self.waits = False
        self.answers: Counter[int] = Counter()

    def ask(self) -> None:
        """Send an observation unlike any other."""
        state = self._chance.uniform(-3, 3)
        message = self._robot.observation(self._level, state, episode=self.episode)
        self._asked[self._robot.send(message)] = (self.episode, state)
        self.waits = True

    def check(self) -> None:
        """Compare every answer that came with what was asked."""
        for chunk in self._robot.chunks:
            episode, state = self._asked.pop(chunk.request_id)
            assert (chunk.session, chunk.episode) == (self._robot.session, episode)
            self.answers[chunk.reason] += 1
            self.waits = chunk.request_id != max([*self._asked, chunk.request_id])
            if chunk.reason == Reason.OK:
                rows = np.array(chunk.rows).reshape(chunk.num_rows, -1)
                assert rows[0, 0] == pytest.approx(state, abs=1e-4)
                assert rows[0, -1] == pytest.approx(self._level / 255, abs=0.02)
        self._robot.chunks.clear()


def test_no_robot_ever_gets_what_another_one_asked(graph: Graph) -> None:
    """SL-01: 1,000 chunks each while others join, reset, supersede and leave at random."""
    graph.server('-p', 'max_robots:=64')
    chance = random.Random(4)
    robots = [ScriptedRobot(graph, name) for name in ('a', 'b')]
    for robot in robots:
        robot.register()
    a, b = (Asker(robot, level, chance) for robot, level in zip(robots, (40, 210), strict=True))
    guests = 0
    while min(a.answers[Reason.OK], b.answers[Reason.OK]) < 1000:
        for asker in (a, b):
            if not asker.waits:
                asker.ask()
        if chance.random() < 0.02:
            b.episode += 1
            b.ask()  # supersedes the one under way, if that has not been answered yet
        if chance.random() < 0.004:
            guests += 1
            guest = ScriptedRobot(graph, f'guest{guests}')
            guest.register()
            assert guest.ask(level=120).reason == Reason.OK
        graph.until(lambda: any(robot.chunks for robot in robots), 'an answer comes', 10.0)
        a.check()
        b.check()
    assert guests > 0
    assert set(a.answers) == {Reason.OK}
    assert set(b.answers) <= {Reason.OK, Reason.SUPERSEDED}


def test_a_second_robot_with_the_same_id_is_refused_while_the_first_lives(graph: Graph) -> None:
    """LC-03: refused at once, nothing lost for the first, both told; silence frees the id."""
    graph.server()
    first, second = ScriptedRobot(graph, 'arm1', 1), ScriptedRobot(graph, 'arm1', 2)
    seen: list[DiagnosticStatus] = []
    graph.node.create_subscription(
        DiagnosticArray, '/diagnostics', lambda m: seen.extend(m.status), 10
    )
    first.register()
    for _ in range(20):
        response = second.ask_to_register()
        assert response.reason == Reason.DUPLICATE_ID
        assert 'arm1 is registered from /arm1' in response.detail
        assert first.ask().reason == Reason.OK
    graph.until(
        lambda: any('DUPLICATE_ID' in status.message for status in seen), 'diagnostics tell it'
    )
    graph.until(
        lambda: second.ask_to_register().reason == Reason.OK, 'the silent robot loses its id'
    )
    assert second.session != first.session
    assert second.ask().reason == Reason.OK
    assert first.ask().reason == Reason.UNKNOWN_SESSION


def test_registration_is_idempotent(graph: Graph) -> None:
    """A lost response costs nothing: the same robot gets the same session again."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    session = robot.session
    assert robot.ask_to_register().session == session
    assert robot.ask().reason == Reason.OK


def test_a_robot_that_does_not_fit_is_told_what_is_expected(graph: Graph) -> None:
    """CQ-11 at registration, and the other refusals."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    cameras = robot.registration().cameras
    refusals = {
        Reason.REJECTED_PROTOCOL: {'protocol_version': 7},
        Reason.REJECTED_JOINTS: {'joint_names': ['a', 'b', 'c']},
        Reason.REJECTED_CAMERAS: {'cameras': cameras[1:]},
        Reason.REJECTED_HORIZON: {'horizon': 1000},
        Reason.REJECTED_SPACING: {'keyframe_spacing_ns': 0},
        Reason.REJECTED_NAME: {'robot_id': 'no spaces'},
    }
    for reason, changes in refusals.items():
        response = robot.ask_to_register(**changes)
        assert (response.reason, response.session) == (reason, 0)
        assert response.detail
    joints = robot.ask_to_register(joint_names=['a', 'b', 'c']).detail
    assert 'received a, b, c' in joints
    assert 'left_waist' in joints


def test_a_publisher_that_can_never_match_is_named_in_diagnostics(graph: Graph) -> None:
    """TR-04: a best-effort robot on our reliable subscription is an ERROR within 2 s."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    seen: list[DiagnosticStatus] = []
    graph.node.create_subscription(
        DiagnosticArray, '/diagnostics', lambda m: seen.extend(m.status), 10
    )
    robot.register()
    profile = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    graph.node.create_publisher(Observation, '/r0/observation', profile)

    def told() -> list[DiagnosticStatus]:
        return [s for s in seen if '/r0/observation' in s.message and s.level == s.ERROR]

    graph.until(told, 'an ERROR names the topic', 5.0)
    status = told()[0]
    assert '/test' in status.message
    assert 'reliable' in status.message.lower()


def test_a_late_joiner_knows_the_state_of_the_server(graph: Graph) -> None:
    """TR-04: the state is latched."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    states: list[ServerState] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    graph.until(lambda: states, 'the state reaches a late joiner', 5.0)
    assert states[0].state == ServerState.READY
    assert (states[0].epoch, states[0].model) == (robot.epoch, 'echo')
    assert states[0].num_robots == 1


def test_sigterm_answers_what_is_under_way_and_ends_well(graph: Graph) -> None:
    """A server that is told to end leaves nobody without an answer and exits with 0."""
    server = graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    requests = [robot.send(robot.observation()) for _ in range(5)]
    assert robot.answer_to(requests[-1]).reason in (Reason.OK, Reason.SHUTDOWN)
    assert server.end() == 0
    assert 'Traceback' not in server.output


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('/fleet/xinfer_server: {ros__parameters: {max_bach: 8}}', ('max_bach', 'max_robots')),
        ('/flet/xinfer_server: {ros__parameters: {max_robots: 8}}', ('/flet', '/fleet/xinfer')),
        ('/fleet/xinfer_server: {ros__parameters: {max_robots: 0}}', ('max_robots', '1 to 256')),
        ('/fleet/xinfer_server: {ros__parameters: {lease_s: soon}}', ('lease_s', 'a number')),
        ('/fleet/xinfer_server: {ros__parameters: {model: tinny}}', ('model', 'tiny')),
    ],
)
def test_a_wrong_setting_stops_the_start_and_names_the_remedy(
    graph: Graph, tmp_path, text: str, words: tuple[str, str]
) -> None:
    """LC-01 at the process: exit code 2, the file, the key, the nearest valid name."""
    path = tmp_path / 'params.yaml'
    path.write_text(text)
    server = graph.run('server_main', '--ros-args', '--params-file', str(path))
    assert server.process.wait(20) == 2
    server.end()
    for word in (str(path), *words):
        assert word in server.output
    assert 'Traceback' not in server.output


def test_settings_that_the_engine_refuses_end_the_server_with_the_code_of_wrong_settings(
    graph: Graph,
) -> None:
    """LC-01: it can only be known once the model is there; a supervisor must not try again."""
    server = graph.run('server_main', '--ros-args', '-p', 'rtc_mode:=hard_prefix')
    assert server.process.wait(60) == 2
    server.end()
    assert 'rtc_mode is hard_prefix, but tiny was not trained' in server.output


def test_the_server_is_a_managed_node(graph: Graph) -> None:
    """Deactivated it refuses, activated again it serves; cleaned up, its engine is gone."""
    graph.server()
    robot = ScriptedRobot(graph, 'r0')
    robot.register()
    states: list[ServerState] = []
    graph.node.create_subscription(ServerState, '/fleet/server_state', states.append, qos.STATE)
    graph.until(lambda: states, 'the state is known')
    graph.transition(Transition.TRANSITION_DEACTIVATE)
    assert robot.ask().reason == Reason.NOT_READY
    assert robot.ask_to_register().reason == Reason.NOT_READY
    graph.transition(Transition.TRANSITION_ACTIVATE)
    assert robot.ask().reason == Reason.OK
    engine = psutil.Process(states[-1].engine_pid)
    graph.transition(Transition.TRANSITION_DEACTIVATE)
    graph.transition(Transition.TRANSITION_CLEANUP)
    graph.until(lambda: not engine.is_running(), 'the engine process ends')
    graph.transition(Transition.TRANSITION_CONFIGURE)
    graph.transition(Transition.TRANSITION_ACTIVATE)
    robot.register()
    assert robot.ask().reason == Reason.OK
