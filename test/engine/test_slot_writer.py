# SPDX-License-Identifier: Apache-2.0
"""What lies in a slot when the engine gets its request."""

import numpy as np

from .scripted_engine import Bench


def _ready(num_slots: int = 4) -> Bench:
    bench = Bench(num_slots=num_slots)
    bench.engine.become_ready(1)
    return bench


def test_every_camera_that_was_sent_is_marked_as_there() -> None:
    bench = _ready(num_slots=1)
    life = bench.engine.life
    assert life is not None
    life.slots.camera_present[:] = False
    bench.ask(bench.robot('a'), 1)
    (request,) = bench.engine.submitted()
    assert life.slots.camera_present[request.slot].all()


def test_noise_of_a_request_is_its_own_and_the_same_when_it_is_repeated() -> None:
    bench = _ready()
    life = bench.engine.life
    assert life is not None
    seeds = []
    robots = [bench.robot('a'), bench.robot('b')]
    for number in (1, 2):
        for robot in robots:
            bench.ask(robot, number)
            request = bench.engine.submitted()[-1]
            seeds.append(int(life.slots.seed[request.slot]))
            bench.engine.finish(request, 0.0)
    assert len(set(seeds)) == 4
    expected = [
        (number * 2654435761 + robot.session) % 2**64 for number in (1, 2) for robot in robots
    ]
    assert seeds == expected


def test_nothing_of_the_last_request_is_left_in_a_slot() -> None:
    bench = _ready(num_slots=1)
    life = bench.engine.life
    assert life is not None
    robot = bench.robot('a')
    leftover = np.full((5, 3), 0.5, np.float32)
    bench.ask(robot, 1, instruction='a long instruction', leftover=leftover, commitment_steps=2)
    bench.engine.finish(bench.engine.submitted()[-1], 0.0)
    bench.ask(robot, 2, instruction='go')
    slots = life.slots
    assert slots.instruction[0, :3].tobytes() == b'go\0'
    assert not slots.instruction[0, 2:].any()
    assert (slots.leftover_steps[0], slots.commitment_steps[0]) == (0, 0)
    assert not slots.leftover[0].any()
