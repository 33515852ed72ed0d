# SPDX-License-Identifier: Apache-2.0
"""The body without physics, and the source that plans along a recording."""

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.sim.closed_loop import Tie
from xinfer_ros.sim.closed_loop_recording import FollowingPlant, RecordingSource, followed

SPACING_NS = 30_000_000
SWITCHING = np.array([False, False, True])


def _motion() -> Rows:
    times = np.linspace(0.0, 6.0, 200)
    return np.column_stack([np.sin(times), np.cos(times), times > 3.0]).astype(np.float32)


def _source(deviation: float = 0.02, seed: int = 1, horizon: int = 50) -> RecordingSource:
    motion = _motion()
    return RecordingSource(
        motion, motion[0], spacing_ns=SPACING_NS, horizon=horizon, deviation=deviation,
        switching=SWITCHING, seed=seed,
    )  # fmt: skip


def _free(executed_steps: int) -> Tie:
    leftover = np.zeros((0, 3), np.float32)
    return Tie(leftover=leftover, frozen_steps=0, executed_steps=executed_steps)


def test_source_without_deviation_tells_a_robot_on_its_way_what_was_recorded() -> None:
    motion = _motion()
    on_its_way = followed(motion, motion[0], SPACING_NS)[79]
    rows = _source(deviation=0.0).chunk(on_its_way, _free(80))
    np.testing.assert_allclose(rows, motion[80:130], atol=1e-6)


def test_last_row_goes_on_after_the_end_of_the_recording() -> None:
    motion = _motion()
    rows = _source(deviation=0.0).chunk(motion[-1], _free(190))
    np.testing.assert_allclose(rows[-1], motion[-1], atol=1e-2)


def test_deviation_is_as_large_as_asked_for_and_differs_from_one_inference_to_the_next() -> None:
    source, motion = _source(deviation=0.1, horizon=400), _motion()
    view = followed(motion, motion[0], SPACING_NS)[0]
    chunks = [source.chunk(view, _free(0)) for _ in range(40)]
    off = np.stack([chunk[100:180, :2] - motion[100:180, :2] for chunk in chunks])
    assert abs(off.std() - 0.1) < 0.02
    assert np.abs(chunks[0] - chunks[1]).max() > 0.05


def test_joint_that_switches_never_deviates() -> None:
    rows = _source(deviation=0.5).chunk(_motion()[60], _free(60))
    assert (rows[:, 2] == _motion()[60:110, 2]).all()


def test_chunk_goes_on_from_the_end_of_what_was_promised() -> None:
    motion = _motion()
    leftover = motion[80:120] + np.float32(0.3) * ~SWITCHING
    tie = Tie(leftover=leftover, frozen_steps=6, executed_steps=80)
    rows = _source().chunk(motion[79], tie)
    assert (rows[:6, :2] == leftover[:6, :2]).all()
    step = np.abs(rows[6] - rows[5])[:2].max()
    assert step < 0.1  # and not the 0.3 that the leftover is off the recording


def test_same_seed_gives_the_same_chunks() -> None:
    view = _motion()[0]
    one, two = (_source(seed=4).chunk(view, _free(0)) for _ in range(2))
    assert (one == two).all()


def test_body_comes_near_a_command_that_stays() -> None:
    plant = FollowingPlant(np.zeros(3, np.float32), SPACING_NS)
    for _ in range(20):
        plant.apply(np.ones(3, np.float32))
    np.testing.assert_allclose(plant.state(), 1.0, atol=1e-4)
