# SPDX-License-Identifier: Apache-2.0
"""A folder of π0.5, served over slots from its path to actions in robot units."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.guidance import Schedule
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.registry import make_model
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions

from .filled_slots import empty_slots, write_request
from .pi05_folders import (
    AFTER,
    BEFORE,
    lerobot_folder,
    openpi_folder,
    set_config,
    set_step,
)

_SLOTS = 3
_BATCH = Batch(slot_ids=(2, 0, 1), state_ids=(0, 1, 2))
Actions = npt.NDArray[np.float32]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in LeRobot's layout, free to be changed."""
    return lerobot_folder(tmp_path / 'folded')


def _served(folder: Path, rtc: RtcOptions | None = None) -> tuple[StagedModel, SlotArrays]:
    """Return a bound model and its slots; slots 1 and 2 have a leftover and a commitment."""
    options = ModelOptions(device='cpu', rtc=rtc if rtc is not None else RtcOptions())
    model = make_model(str(folder), options)
    slots = empty_slots(model.contract, _SLOTS)
    for slot in range(_SLOTS):
        tied = slot > 0
        write_request(
            slots,
            slot,
            seed=slot,
            leftover_steps=9 + slot if tied else 0,
            commitment_steps=2 + slot if tied else 0,
        )
    model.bind(slots, LanePlan(max_batch=(3, 3, 3), num_states=3))
    return model, slots


def _answers(served: tuple[StagedModel, SlotArrays], batch: Batch = _BATCH) -> Actions:
    model, slots = served
    for stage in Stage:
        assert model.run(stage, batch) == {}
    return slots.actions.copy()


@pytest.mark.parametrize('layout', [lerobot_folder, openpi_folder])
def test_folder_of_either_layout_answers_in_robot_units(layout: object, tmp_path: Path) -> None:
    model, slots = _served(layout(tmp_path / 'folded'))  # type: ignore[operator]
    assert model.contract.name == 'folded'
    actions = _answers((model, slots))
    assert np.isfinite(actions).all()
    assert np.abs(np.diff(actions, axis=1)).max() > 1e-3
    for slot, steps in ((1, 3), (2, 4)):
        np.testing.assert_array_equal(actions[slot, :steps], slots.leftover[slot, :steps])


@pytest.mark.parametrize(
    'rtc',
    [
        RtcOptions(),
        RtcOptions(jacobian=Jacobian.VJP),
        RtcOptions(schedule=Schedule.EXP, max_gain=10.0),
        RtcOptions(mode=RtcMode.NONE),
        RtcOptions(mode=RtcMode.HARD_PREFIX),
    ],
    ids=['identity', 'vjp', 'exp', 'none', 'hard prefix'],
)
def test_batch_of_any_variant_gives_what_its_requests_get_alone(
    folder: Path, rtc: RtcOptions
) -> None:
    set_config(folder, rtc_training_max_delay=6)
    served = _served(folder, rtc)
    together = _answers(served)
    for slot in range(_SLOTS):
        served[1].actions[:] = 0
        alone = _answers(served, Batch(slot_ids=(slot,), state_ids=(slot,)))
        np.testing.assert_allclose(alone[slot], together[slot], rtol=0, atol=1e-5)


def test_variants_tie_free_rows_differently(folder: Path) -> None:
    set_config(folder, rtc_training_max_delay=6)
    variants = (
        RtcOptions(mode=RtcMode.NONE),
        RtcOptions(mode=RtcMode.GUIDED),
        RtcOptions(mode=RtcMode.GUIDED, jacobian=Jacobian.VJP),
        RtcOptions(),  # the checkpoint's own: a hard prefix
    )
    answers = [_answers(_served(folder, rtc)) for rtc in variants]
    for index, first in enumerate(answers):
        for second in answers[index + 1 :]:
            assert np.abs(first[1, 3:] - second[1, 3:]).max() > 1e-4
            np.testing.assert_allclose(first[0], second[0], atol=1e-5)  # has no leftover


def test_relative_actions_start_from_the_state(folder: Path) -> None:
    absolute = _answers(_served(folder, RtcOptions(mode=RtcMode.NONE)))
    settings = {'enabled': True, 'exclude_joints': [], 'action_names': None}
    set_step(folder, BEFORE, 'relative_actions_processor', **settings)
    set_step(folder, AFTER, 'absolute_actions_processor', enabled=True)
    model, slots = _served(folder, RtcOptions(mode=RtcMode.NONE))
    relative = _answers((model, slots))
    np.testing.assert_allclose(relative[0], absolute[0] + slots.state[0], atol=1e-5)


def test_camera_that_a_robot_lacks_changes_nothing_else(folder: Path) -> None:
    served = _served(folder)
    seen = _answers(served)
    served[1].camera_present[0, 1] = False
    without = _answers(served)
    assert np.abs(without[0] - seen[0]).max() > 1e-4
    np.testing.assert_array_equal(without[1:], seen[1:])


def test_bfloat16_serves_nearly_the_same(folder: Path) -> None:
    wide = _answers(_served(folder))
    model = make_model(str(folder), ModelOptions(device='cpu', dtype='bfloat16'))
    slots = _served(folder)[1]
    model.bind(slots, LanePlan(max_batch=(3, 3, 3), num_states=3))
    narrow = _answers((model, slots))
    assert 0.0 < np.abs(narrow - wide).max() < 0.1


def test_cuda_that_is_not_there_is_refused(folder: Path) -> None:
    beyond = f'cuda:{torch.cuda.device_count()}'
    with pytest.raises(ConfigError, match=r'device is cuda:\d+, but torch .* choose cpu or auto'):
        make_model(str(folder), ModelOptions(device=beyond))


@pytest.mark.parametrize(
    ('change', 'reason'),
    [({'device': 'gpu'}, 'auto, cpu, cuda or cuda:N'), ({'dtype': 'int8'}, 'auto, float32')],
)
def test_unknown_device_or_type_is_refused(
    folder: Path, change: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        make_model(str(folder), replace(ModelOptions(), **change))


def test_contract_tells_apart_models_that_differ_in_flow_steps_alone(folder: Path) -> None:
    """Their calibrations must not be taken for each other's."""
    ten = make_model(str(folder), ModelOptions(device='cpu')).contract
    set_config(folder, num_inference_steps=4)
    four = make_model(str(folder), ModelOptions(device='cpu')).contract
    assert ten.network.endswith('weights, 10 flow steps')
    assert four == replace(ten, network=ten.network.replace('10 flow', '4 flow'))


def test_absolute_joint_that_no_joint_is_called_is_refused(folder: Path) -> None:
    """Else a gripper would be moved by differences, case RT-06."""
    owner = folder / 'xinfer.json'
    told = json.loads(owner.read_text())
    owner.write_text(json.dumps(told | {'relative_actions': True, 'absolute_joints': ['gripper']}))
    with pytest.raises(
        ConfigError, match=r"absolute_joints has 'gripper', but no joint is called"
    ):
        make_model(str(folder), ModelOptions(device='cpu'))
