# SPDX-License-Identifier: Apache-2.0
"""The server node over the wire."""

import random
from array import array
from collections import Counter

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy

from xinfer_ros.errors import Reason
from xinfer_ros.msg import Observation

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
