# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of the other model families, written in the published layouts."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from xinfer_ros.models.smolvla import SmolVla
from xinfer_ros.models.smolvla_checkpoint import load_smolvla, smolvla_files
from xinfer_ros.models.wall import Wall
from xinfer_ros.models.wall_checkpoint import WallInputs, load_wall

from .seeded_weights import seeded_weight

DATA = Path(__file__).parents[1] / 'data'
WALL_PICTURES = ((24, 40), (24, 24))


def seeded_weights(names: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a file of names and shapes."""
    shapes = json.loads(names.read_text())
    return {name: torch.from_numpy(seeded_weight(name, tuple(shapes[name]))) for name in shapes}


def write_checkpoint(folder: Path, weights: dict[str, torch.Tensor], config: Path) -> None:
    """Write what a loader reads."""
    save_file({name: weights[name].contiguous() for name in weights}, folder / 'model.safetensors')
    (folder / 'config.json').write_text(config.read_text())


def tiny_smolvla(folder: Path) -> SmolVla:
    """Return the tiny SmolVLA, read from files that are written to a folder."""
    source = DATA / 'smolvla_tiny'
    write_checkpoint(folder, seeded_weights(source / 'weights.json'), source / 'config.json')
    return load_smolvla(smolvla_files(folder, head_dim=8, vision_head_dim=8))


def wall_inputs(padding_target: float | None = None) -> WallInputs:
    """Return what the tiny Wall-OSS checkpoints do not tell."""
    return WallInputs(
        pictures=WALL_PICTURES,
        horizon=5,
        joints=4,
        state_token=191,
        padding_target=padding_target,
    )


def tiny_wall(folder: Path, generation: str, padding_target: float | None = None) -> Wall:
    """Return a tiny Wall-OSS, read from files that are written to a folder."""
    source = DATA / 'wall_tiny'
    weights = seeded_weights(source / f'weights_{generation}.json')
    write_checkpoint(folder, weights, source / f'config_{generation}.json')
    return load_wall(folder, wall_inputs(padding_target))
