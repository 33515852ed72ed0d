# SPDX-License-Identifier: Apache-2.0
"""SmolVLA and Wall-OSS with random weights: their names, sizes and rooms."""

import pytest
import torch

from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.random_families import drawn_family, random_family_names

_OPTIONS = ModelOptions(device='cpu')


def test_names_say_what_is_tiny_and_what_has_published_sizes() -> None:
    assert all(name.startswith(('tiny_', 'random_')) for name in random_family_names())


@pytest.mark.parametrize('name', ['tiny_smolvla', 'tiny_wall'])
def test_making_a_model_leaves_the_global_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    drawn_family(name, _OPTIONS)
    assert torch.equal(torch.get_rng_state(), before)


def test_rooms_are_for_prompts_that_exist() -> None:
    """Prompts of Wall-OSS hold the pictures' place holders, so none is shorter than those."""
    drawn = drawn_family('tiny_wall', _OPTIONS)
    shortest = drawn.prompt_rooms[-1] - drawn.contract.max_instruction_bytes
    assert all(room >= shortest for room in drawn.prompt_rooms)
    assert len(drawn.prompt_rooms) > 1
    assert drawn_family('tiny_smolvla', _OPTIONS).prompt_rooms == (64, 96)


def test_cameras_of_wall_oss_have_pictures_of_different_sizes() -> None:
    sizes = [camera.width for camera in drawn_family('tiny_wall', _OPTIONS).contract.cameras]
    assert sizes == [320, 288, 288]
