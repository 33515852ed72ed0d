# SPDX-License-Identifier: Apache-2.0
"""Every scheduling policy in the engine: each robot gets its own answers, and gets them."""

import queue
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.observation import Observation
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.bare_server import start_server
from xinfer_ros.engine.division import Division
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot
from xinfer_ros.engine.sample_robot import sample_frames
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import load_calibration, save_calibration
from xinfer_ros.sched.settings import POLICIES

from .simulated_fleet import SimulatedFleet

GROUPS = ('serial', 'dynamic_batch', 'robion', 'round_robin', 'armory_edf', 'lookahead')
ROBOTS, REQUESTS = 8, 3


@pytest.mark.parametrize('policy', sorted(POLICIES))
def test_eight_robots_are_all_served(policy: str) -> None:
    """Nobody waits forever, whatever the policy."""
    fleet = SimulatedFleet(load_calibration('soft'), policy=policy, share=None)
    members = [fleet.join(budget_ms=2000, period_ms=100, after_ms=9.0 * n) for n in range(8)]
    fleet.time.run(6.0)
    for member in members:
        assert {outcome.reason for outcome in member.outcomes} == {Reason.OK}
    answers = [len(member.outcomes) for member in members]
    assert min(answers) >= 5
    assert min(answers) >= 0.7 * max(answers)


def test_lockstep_behind_the_barrier_of_common_rounds_serves_everybody() -> None:
    """Switch R and the barrier of Robion together."""
    device = load_calibration('soft')
    fleet = SimulatedFleet(device, policy='robion', share=None, round_barrier=True)
    members = [fleet.join(budget_ms=2000, period_ms=100, after_ms=9.0 * n) for n in range(6)]
    fleet.time.run(4.0)
    for member in members:
        assert {outcome.reason for outcome in member.outcomes} == {Reason.OK}
        assert len(member.outcomes) >= 3


class Asker:
    """Robots of a server whose joints stand where nobody else's do."""

    def __init__(self, config: ServerConfig) -> None:
        self._clock = MonotonicClock()
        self.answers: queue.SimpleQueue[tuple[Robot, Answer]] = queue.SimpleQueue()
        self.front_end = start_server(
            config, self._clock, lambda robot, answer: self.answers.put((robot, answer))
        )
        self._contract = self.front_end.contract()
        self._frames = sample_frames(self._contract)

    def register(self, number: int) -> Robot:
        """Register a robot."""
        contract = self._contract
        registration = Registration(
            robot_id=f'r{number}',
            namespace=f'/r{number}',
            joint_names=contract.joint_names,
            cameras=tuple(camera.name for camera in contract.cameras),
            keyframe_spacing_ns=30_000_000,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=1,
        )
        return self.front_end.register(registration)[0]

    def ask(self, robot: Robot, request_id: int, position: float) -> None:
        """Let a robot ask with all its joints at one position."""
        contract = self._contract
        observation = Observation(
            session=robot.session,
            episode=0,
            request_id=request_id,
            executed_steps=4 * request_id,
            instruction='pick',
            joint_names=contract.joint_names,
            state=np.full(contract.action_dim, position, np.float32),
            images=self._frames,
            budget_ns=20_000_000_000,
            minimum_period_ns=1_000_000,
            commitment_steps=0,
            keyframe_spacing_ns=30_000_000,
            leftover=np.zeros((2, contract.action_dim), np.float32),
        )
        self.front_end.submit(robot, observation, self._clock.now_ns())


@pytest.mark.parametrize('policy', GROUPS)
def test_no_robot_gets_the_chunk_of_another(policy: str, tmp_path: Path) -> None:
    """In an engine process, in batches of up to eight."""
    device = replace(load_calibration('echo'), batch_work=((1.0,) * 8,) * 3)
    save_calibration(device, tmp_path / 'echo.json')
    config = ServerConfig(
        model='echo',
        calibration=str(tmp_path / 'echo.json'),
        scheduling_policy=policy,
        admission='none',
        spare_engine=False,
    )
    asker = Asker(config)
    try:
        robots = {asker.register(number): number for number in range(ROBOTS)}
        for robot, number in robots.items():
            asker.ask(robot, 1, float(number))
        for _ in range(ROBOTS * REQUESTS):
            robot, answer = asker.answers.get(timeout=20.0)
            assert (answer.reason, answer.session) == (Reason.OK, robot.session)
            expected = robots[robot] + 10.0 * (answer.request_id - 1)
            np.testing.assert_array_equal(answer.rows[0, :-1], np.float32(expected))
            if answer.request_id < REQUESTS:
                position = robots[robot] + 10.0 * answer.request_id
                asker.ask(robot, answer.request_id + 1, position)
    finally:
        asker.front_end.close()


def test_only_robion_divides_the_device() -> None:
    device = load_calibration('tiny')
    for policy in POLICIES:
        settings = EngineSettings(ServerConfig(scheduling_policy=policy))
        assert bool(settings.context_share(device)) is (policy == 'robion')


@pytest.mark.parametrize(
    ('share', 'cores', 'threads'), [(0.55, 2, (1, 1)), (0.7, 8, (6, 2)), (0.95, 4, (3, 1))]
)
def test_cores_are_divided_by_share(share: float, cores: int, threads: tuple[int, int]) -> None:
    division = Division.of(share, on_cpu=True, cores=cores)
    assert (division.context, division.action) == threads
    assert f'{threads[0]} CPU threads for Context' in division.words


@pytest.mark.parametrize(
    ('on_cpu', 'cores', 'what'), [(False, 16, 'a GPU'), (True, 1, 'one core')]
)
def test_device_that_cannot_be_divided_is_told_in_a_line(
    on_cpu: bool, cores: int, what: str
) -> None:
    division = Division.of(0.6, on_cpu=on_cpu, cores=cores)
    assert (division.context, division.action) == (0, 0)
    assert what in division.words
    assert '\n' not in division.words


def test_every_worker_begins_with_the_threads_of_its_part() -> None:
    used: list[int] = []
    begin = Division(context=3, action=1).beginner(used.append)
    for stage in Stage:
        begin(stage)
    assert used == [3, 3, 1]
    Division().beginner(used.append)(Stage.VIT)
    assert used == [3, 3, 1]
