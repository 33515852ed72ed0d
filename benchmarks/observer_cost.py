# SPDX-License-Identifier: Apache-2.0
"""What a request costs the view of the fleet, and what a look at it costs: CPU of one thread."""

import time
from collections.abc import Callable

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.observation import Observation
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot, RobotRegister
from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.observe.fleet_view import FleetView, ViewSettings
from xinfer_ros.observe.prometheus import prometheus_text

ROBOTS, REQUESTS, ROUNDS = 32, 10_000, 7
PERIOD_NS = 180_000_000
CONTRACT = echo_contract()
TIMES = ServerTimes(
    decode_ns=10**6, queue_ns=10**6, vit_ns=10**7, prefill_ns=10**7, action_ns=10**7,
    server_ns=4 * 10**7,
)  # fmt: skip


def _robot(register: RobotRegister, number: int) -> Robot:
    registration = Registration(
        robot_id=f'r{number}',
        namespace=f'/r{number}',
        joint_names=CONTRACT.joint_names,
        cameras=tuple(camera.name for camera in CONTRACT.cameras),
        keyframe_spacing_ns=33_300_000,
        horizon=0,
        protocol_version=PROTOCOL_VERSION,
        instance=1,
    )
    return register.register(registration, CONTRACT, 0)[0]


def _request(robot: Robot, number: int) -> tuple[Robot, Observation, Answer]:
    asked = Observation(
        session=robot.session,
        episode=0,
        request_id=number,
        executed_steps=6 * number,
        instruction='pick',
        joint_names=CONTRACT.joint_names,
        state=np.zeros(CONTRACT.action_dim, np.float32),
        images=(),
        budget_ns=PERIOD_NS,
        minimum_period_ns=PERIOD_NS,
        commitment_steps=6,
        keyframe_spacing_ns=33_300_000,
        leftover=np.zeros((40, CONTRACT.action_dim), np.float32),
        ticks=6 * number,
        answered_request_id=number - 1,
        round_trip_ns=5 * 10**7,
    )
    answer = Answer(
        session=robot.session, episode=0, request_id=number, epoch=1, reason=Reason.OK, times=TIMES
    )
    return robot, asked, answer


def _best_us(work: Callable[[], None], count: int) -> float:
    """Return the least CPU time of one of ``count`` things that the work does [us]."""
    best = float('inf')
    for _ in range(ROUNDS):
        begun = time.thread_time()
        work()
        best = min(best, (time.thread_time() - begun) / count * 1e6)
    return best


def main() -> None:
    """Measure and print."""
    view, register = FleetView(ViewSettings.from_config(ServerConfig())), RobotRegister(32, 10**18)
    robots = [_robot(register, number) for number in range(ROBOTS)]
    for robot in robots:
        view.joined(robot, CONTRACT, 0)
    requests = [_request(robots[n % ROBOTS], n // ROBOTS + 1) for n in range(REQUESTS)]
    now_ns = 0

    def serve() -> None:
        nonlocal now_ns
        for robot, asked, answer in requests:
            now_ns += PERIOD_NS // ROBOTS
            view.arrived(robot, asked, now_ns)
            view.answered(robot, asked, answer, now_ns)

    print(f'{REQUESTS} requests of {ROBOTS} robots, best of {ROUNDS} rounds, CPU of one thread')
    print(f'a request, arrival and answer: {_best_us(serve, REQUESTS):.1f} us')
    print(f'a status of the fleet: {_best_us(lambda: _ignore(view.status(now_ns)), 1):.0f} us')
    scrape = _best_us(lambda: _ignore(prometheus_text(view, now_ns)), 1)
    print(f'a scrape of the metrics: {scrape:.0f} us')


def _ignore(_: object) -> None:
    pass


if __name__ == '__main__':
    main()
