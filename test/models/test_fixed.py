# SPDX-License-Identifier: Apache-2.0
"""The model that takes a fixed time."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError, ModelError
from xinfer_ros.models.fixed import FixedModel
from xinfer_ros.models.registry import echo_contract, make_model
from xinfer_ros.predict.matching import serving_calibration

from .filled_slots import empty_slots, write_request

CONTRACT = replace(echo_contract(), stages=(Stage.ACTION,))
BATCH = Batch(slot_ids=(1, 2), state_ids=(0, 1))


def _model(model_ms: float) -> tuple[FixedModel, list[float]]:
    slept: list[float] = []
    return FixedModel(CONTRACT, model_ms, slept.append), slept


def test_a_batch_takes_the_time_once_and_a_model_of_no_time_does_not_sleep() -> None:
    slots = empty_slots(CONTRACT, 4)
    for model_ms, expected in ((5.0, [0.005]), (0.0, [])):
        model, slept = _model(model_ms)
        model.bind(slots, LanePlan(num_states=4))
        assert model.run(Stage.ACTION, BATCH) == {}
        assert slept == expected


def test_answer_shows_whose_it_is_and_keeps_what_was_promised() -> None:
    slots = empty_slots(CONTRACT, 4)
    for slot in range(4):
        write_request(slots, slot, seed=slot, leftover_steps=5, commitment_steps=slot)
    model, _ = _model(0.0)
    model.bind(slots, LanePlan(num_states=4))
    model.run(Stage.ACTION, BATCH)
    for slot in BATCH.slot_ids:
        expected = slots.state[slot] + 1e-3 * np.arange(16, dtype=np.float32)[:, None]
        expected[:slot] = slots.leftover[slot, :slot]
        np.testing.assert_allclose(slots.actions[slot], expected, atol=1e-6)
    assert not slots.actions[[0, 3]].any()


def test_model_without_slots_says_so() -> None:
    with pytest.raises(ModelError, match='call bind'):
        _model(0.0)[0].run(Stage.ACTION, BATCH)


def test_name_gives_model_and_calibration() -> None:
    """All of the time is in Action, one unit at a time, so nothing overlaps."""
    model = make_model('fixed:5')
    assert (model.contract.name, model.contract.stages) == ('fixed', (Stage.ACTION,))
    settings = EngineSettings(ServerConfig(model='fixed:5'))
    device = settings.checked()
    assert device.bound == (1, 1, 1)
    assert device.work_ms[Stage.ACTION] == 5.0
    assert device.saturated_per_ms == pytest.approx(0.2)
    assert EngineSettings(ServerConfig(model='fixed:0')).checked().work_ms[Stage.ACTION] > 0.0
    assert serving_calibration('paper', 'fixed:5').name == 'paper'


@pytest.mark.parametrize('name', ['fixed:', 'fixed:-1', 'fixed:nan', 'fixed:1e9', 'fixed:five'])
def test_what_is_no_time_is_refused_with_what_is(name: str) -> None:
    with pytest.raises(ConfigError, match='0 to 10000 ms is allowed, such as fixed:5'):
        make_model(name)
