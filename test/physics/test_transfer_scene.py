# SPDX-License-Identifier: Apache-2.0
"""The scene of the cube transfer, and the table that slides."""

import numpy as np
import pytest

from xinfer_ros.physics.transfer_scene import CONTROL_NS, Drift, TransferScene, load_model

SEED = 2


def _cube_path(drift: Drift, seconds: float) -> np.ndarray:
    """Return where the cube is at each control step ``(steps, 3)``."""
    scene = TransferScene(load_model(sliding=drift.speed > 0.0), SEED, drift)
    home, path = scene.view().joints, []
    for _ in range(round(seconds * 1e9 / CONTROL_NS)):
        scene.step(home)
        path.append(scene.view().cube)
    return np.array(path)


def test_cube_rests_where_the_seed_puts_it() -> None:
    path = _cube_path(Drift(), 1.0)
    np.testing.assert_allclose(path, path[0] + np.zeros_like(path), atol=2e-4)
    again = TransferScene(load_model(), SEED, Drift()).view().cube
    other = TransferScene(load_model(), SEED + 1, Drift()).view().cube
    np.testing.assert_allclose(path[0], again, atol=2e-4)
    assert np.abs(other - again).max() > 0.01


def test_sliding_table_carries_the_cube_to_and_fro_at_its_speed() -> None:
    drift = Drift(speed=0.05, low=0.46, high=0.54)
    path = _cube_path(drift, 8.0)
    y = path[100:, 1]
    assert 0.44 < y.min() < drift.low + 0.005
    assert drift.high - 0.005 < y.max() < 0.56
    speeds = np.abs(np.diff(y)) / (CONTROL_NS / 1e9)
    assert np.median(speeds) == pytest.approx(0.05, rel=0.02)
    assert np.ptp(path[:, 0]) < 1e-3
    assert np.ptp(path[20:, 2]) < 1e-3


def test_sliding_table_changes_nothing_about_the_arms() -> None:
    views = []
    for speed in (0.0, 0.05):
        scene = TransferScene(load_model(sliding=speed > 0.0), SEED, Drift(speed=speed))
        target = scene.view().joints + 0.1
        for _ in range(50):
            scene.step(target)
        views.append(scene.view())
    np.testing.assert_allclose(views[0].joints, views[1].joints, atol=1e-3)


def test_untouched_cube_is_worth_nothing() -> None:
    scene = TransferScene(load_model(), SEED, Drift())
    assert scene.reward() == 0
    assert not scene.is_transferred()
