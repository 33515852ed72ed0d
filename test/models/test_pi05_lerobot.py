# SPDX-License-Identifier: Apache-2.0
"""The processors of a π0.5 folder in the layout of LeRobot."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.normalise import MeanStdStatistics, NoStatistics
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05_folder import load
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions

from .pi05_folders import (
    AFTER,
    AFTER_ARRAYS,
    BEFORE,
    BEFORE_ARRAYS,
    DIM,
    TINY,
    lerobot_folder,
    mend,
    read,
    set_config,
    set_step,
    step,
    write_arrays,
    write_settings,
)
from .test_tokenizer_files import write_json_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in LeRobot's layout, free to be changed."""
    return lerobot_folder(tmp_path / 'folded')


def test_state_at_the_stored_mean_is_zero(folder: Path) -> None:
    """SL-08: state = stored mean reaches the model as 0.0."""
    mean = np.linspace(-1, 2, DIM).astype(np.float32)
    write_arrays(folder, state_mean=mean, state_std=np.full(DIM, 0.25))
    for file in (BEFORE, AFTER):
        name = 'normalizer_processor' if file == BEFORE else 'unnormalizer_processor'
        set_step(folder, file, name, norm_map={'STATE': 'MEAN_STD', 'ACTION': 'QUANTILES'})
    state = read(folder).layout.state
    assert isinstance(state, MeanStdStatistics)
    np.testing.assert_array_equal(state.normalise(mean), np.zeros(DIM))


@pytest.mark.parametrize(
    ('mode', 'low', 'high'), [('MIN_MAX', 'min', 'max'), ('QUANTILE10', 'q10', 'q90')]
)
def test_other_ranges_become_minus_one_and_one(
    folder: Path, mode: str, low: str, high: str
) -> None:
    ends = {f'action_{low}': np.full(DIM, -0.5), f'action_{high}': np.full(DIM, 1.5)}
    write_arrays(folder, **ends)
    set_step(folder, BEFORE, 'normalizer_processor', norm_map={'ACTION': mode})
    set_step(folder, AFTER, 'unnormalizer_processor', norm_map={'ACTION': mode})
    found = read(folder)
    space = found.layout.action_space.statistics
    np.testing.assert_allclose(space.normalise(np.full(DIM, -0.5)), -1.0)
    np.testing.assert_allclose(space.normalise(np.full(DIM, 1.5)), 1.0)
    assert isinstance(found.layout.state, NoStatistics)  # a feature that no mode names


def _drop_arrays(folder: Path) -> None:
    def drop(found: dict[str, Any]) -> None:
        del step(found, 'normalizer_processor')['state_file']

    mend(folder / BEFORE, drop)


def _drop_step(folder: Path) -> None:
    def drop(found: dict[str, Any]) -> None:
        found['steps'].remove(step(found, 'normalizer_processor'))

    mend(folder / BEFORE, drop)


@pytest.mark.parametrize(
    ('damage', 'reason'),
    [
        (_drop_arrays, r'there is no q01 of it; save the checkpoint with the statistics'),
        (_drop_step, 'there are no statistics'),
        (lambda folder: (folder / BEFORE).unlink(), 'policy_preprocessor.json does not exist'),
        (lambda folder: (folder / BEFORE_ARRAYS).unlink(), 'no readable safetensors file'),
    ],
    ids=['no file', 'no step', 'no processor', 'file is gone'],
)
def test_without_statistics_nothing_is_served(
    folder: Path, damage: Callable[[Path], None], reason: str
) -> None:
    """SL-08: no statistics, no start."""
    damage(folder)
    with pytest.raises(ConfigError, match=reason):
        load(folder, ModelOptions())


def test_statistics_that_differ_between_the_processors_are_refused(folder: Path) -> None:
    write_arrays(folder, action_q01=np.full(DIM, -0.9))
    lone = folder.parent / 'lone'
    shutil.copytree(folder, lone)
    write_arrays(lone, action_q01=np.full(DIM, -0.8))
    shutil.copy(lone / AFTER_ARRAYS, folder / AFTER_ARRAYS)
    with pytest.raises(ConfigError, match='not those of the preprocessor'):
        read(folder)


def test_unknown_step_is_refused(folder: Path) -> None:
    """A step that is left out in silence changes what the model sees."""
    mend(folder / BEFORE, lambda found: found['steps'].append({'registry_name': 'mirror'}))
    with pytest.raises(ConfigError, match="step 'mirror' is unknown"):
        read(folder)


def test_statistics_outside_of_the_folder_are_refused(folder: Path) -> None:
    def move(found: dict[str, Any]) -> None:
        step(found, 'normalizer_processor')['state_file'] = '../other.safetensors'

    mend(folder / BEFORE, move)
    with pytest.raises(ConfigError, match='must lie in the same folder'):
        read(folder)


def _make_relative(folder: Path, names: list[str] | None) -> None:
    settings = {'enabled': True, 'exclude_joints': ['gripper'], 'action_names': names}
    set_step(folder, BEFORE, 'relative_actions_processor', **settings)
    set_step(folder, AFTER, 'absolute_actions_processor', enabled=True)


def test_relative_actions_are_read_with_their_exceptions(folder: Path) -> None:
    names = [f'left_{index}' for index in range(13)] + ['left_Gripper']
    _make_relative(folder, names)
    found = read(folder)
    assert found.contract.joint_names == tuple(names)
    relative = found.processor.action_space.relative
    assert relative is not None
    assert relative.tolist() == [True] * 13 + [False]


def test_relative_actions_without_names_are_relative_in_every_joint(folder: Path) -> None:
    _make_relative(folder, None)
    relative = read(folder).processor.action_space.relative
    assert relative is not None
    assert relative.all()


def test_owner_may_say_which_joints_stay_absolute(folder: Path) -> None:
    names = [f'arm_{index}' for index in range(13)] + ['hand']
    _make_relative(folder, None)
    write_settings(folder, **TINY, joint_names=names, absolute_joints=['hand'])
    relative = read(folder).processor.action_space.relative
    assert relative is not None
    assert relative.tolist() == [True] * 13 + [False]


def test_relative_on_the_way_in_and_absolute_on_the_way_out_belong_together(folder: Path) -> None:
    set_step(folder, BEFORE, 'relative_actions_processor', enabled=True)
    with pytest.raises(ConfigError, match='must be enabled exactly where'):
        read(folder)


def test_actions_are_absolute_where_nobody_says_otherwise(folder: Path) -> None:
    assert read(folder).processor.action_space.relative is None


def test_files_of_a_version_that_does_not_pad_are_not_padded(folder: Path) -> None:
    found = read(folder)
    assert found.layout.state_width == 0
    assert not any('padded' in warning for warning in found.warnings)


def test_files_of_older_versions_are_padded_with_a_warning(folder: Path) -> None:
    """LeRobot 0.4 padded, 0.5.0 did not, and their files are alike."""

    def drop(found: dict[str, Any]) -> None:
        found['steps'].remove(step(found, 'relative_actions_processor'))

    mend(folder / BEFORE, drop)
    found = read(folder)
    assert found.layout.state_width == 32
    assert any('"state_prompt": "unpadded"' in warning for warning in found.warnings)


def test_owner_says_that_the_state_is_padded(folder: Path) -> None:
    write_settings(folder, **TINY, state_prompt='padded')
    found = read(folder)
    assert found.layout.state_width == 32
    zeros = np.zeros(DIM, np.float32)
    assert found.processor.state_prompt.text('x', zeros).count('128') == 32


def test_tokenizer_is_taken_from_where_it_was_stored(folder: Path) -> None:
    pytest.importorskip('tokenizers')
    write_settings(folder, vision_heads=4)
    (folder / 'tokenizer').mkdir()
    write_json_tokenizer(folder / 'tokenizer' / 'tokenizer.json')
    found = read(folder)
    assert found.tokenizer == 'tokenizer/tokenizer.json'
    assert found.contract.max_instruction_bytes == 400


def test_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    write_settings(folder, vision_heads=4)
    with pytest.raises(ConfigError, match='has no tokenizer, and none is fetched'):
        read(folder)


def test_instruction_of_the_longest_length_fits_behind_the_longest_state(folder: Path) -> None:
    write_settings(folder, **TINY, prompt_tokens=120)
    found = read(folder)
    longest = 'x' * found.contract.max_instruction_bytes
    far = np.full(DIM, 100.0, np.float32)
    assert len(found.processor.state_prompt.ids(longest, far)) == 120


def test_state_that_leaves_no_room_for_words_is_refused(folder: Path) -> None:
    write_settings(folder, **TINY, prompt_tokens=60)
    with pytest.raises(ConfigError, match='raise prompt_tokens'):
        read(folder)


def test_checkpoint_trained_with_a_clean_prefix_is_served_with_one(folder: Path) -> None:
    set_config(folder, rtc_training_max_delay=5)
    found = read(folder)
    assert found.rtc.mode is RtcMode.HARD_PREFIX
    assert found.contract.max_commitment_steps == 5
    guided = read(folder, RtcOptions(mode=RtcMode.GUIDED))
    assert guided.contract.max_commitment_steps == 8


def test_hard_prefix_of_another_checkpoint_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match='folded was not trained with a clean prefix'):
        read(folder, RtcOptions(mode=RtcMode.HARD_PREFIX))


def test_jacobian_reaches_the_model(folder: Path) -> None:
    assert read(folder, RtcOptions(jacobian=Jacobian.VJP)).rtc.jacobian is Jacobian.VJP
