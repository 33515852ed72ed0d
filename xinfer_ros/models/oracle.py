# SPDX-License-Identifier: Apache-2.0
"""Known answers of a checkpoint, and how far a model is from them."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from xinfer_ros.core.guidance import Schedule, prefix_weights
from xinfer_ros.errors import ModelError
from xinfer_ros.models.flow import RtcInputs
from xinfer_ros.models.folder import Difference
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.rtc import Jacobian

ORACLE_FILE = 'oracle.npz'
_BATCH = re.compile(r'b(\d+)_(.+)')
_GUIDED = re.compile(
    r'actions_guided_d(?P<d>\d+)_end(?P<end>\d+)_(?P<schedule>[a-z]+)_beta(?P<beta>[\d.]+)'
    r'_(?P<jacobian>[a-z]+)'
)
_HARD = re.compile(r'actions_hard_prefix_d(\d+)')
_IMAGE = re.compile(r'image(\d+)_u8')

Answers = Mapping[str, Tensor]
Make = Callable[[RtcInputs | None], Tensor]


def pi05_differences(model: Pi05, path: Path) -> list[Difference]:
    """
    Return the largest difference of every known answer, computed from pictures to actions.

    :param model: ready to run, guided in every column
    :param path: an ``.npz`` file; names are ``b<requests>_<array>`` as in the shipped checkpoint
    :raises ModelError: if an array is missing or of another shape
    """
    found = []
    for batch, answers in sorted(_answers(path, model).items()):
        try:
            for check, difference in _compared(model, answers):
                found.append(Difference(check=check, batch=batch, largest=difference))
        except (KeyError, RuntimeError, ValueError) as error:
            raise ModelError(f'{path}: answers of {batch} requests do not fit: {error}') from error
    return found


def _answers(path: Path, model: Pi05) -> dict[int, dict[str, Tensor]]:
    device = model.action_in_proj.weight.device
    answers: dict[int, dict[str, Tensor]] = {}
    with np.load(path) as stored:
        for name in stored.files:
            if match := _BATCH.fullmatch(name):
                array = torch.from_numpy(stored[name]).to(device)
                answers.setdefault(int(match[1]), {})[match[2]] = array
    if not answers:
        raise ModelError(f'{path} has no array named b<requests>_<array>')
    return answers


def _compared(model: Pi05, answers: Answers) -> Iterator[tuple[str, float]]:
    """Return a name and the largest difference of each known answer."""
    dtype = model.action_in_proj.weight.dtype
    pictures = [answers[name] for name in sorted(answers) if _IMAGE.fullmatch(name)]
    features = model.vit((torch.cat(pictures).float() / 255.0 * 2.0 - 1.0).to(dtype))
    if 'vit_features' in answers:
        yield 'vit', _largest(features, answers['vit_features'])
    by_camera = features.view(len(pictures), -1, *features.shape[1:]).transpose(0, 1)
    context = model.prefill(
        by_camera, answers['image_mask'], answers['tokens'], answers['token_mask']
    )

    def actions(rtc: RtcInputs | None) -> Tensor:
        return model.action(*context, answers['noise'], rtc)

    for name, expected in answers.items():
        if name == 'actions_plain':
            yield 'plain', _largest(actions(None), expected)
        elif match := _GUIDED.fullmatch(name):
            label = f'guided, d = {match["d"]}, {match["jacobian"]}'
            yield label, _largest(actions(_guided(answers, match)), expected)
        elif match := _HARD.fullmatch(name):
            hard = _hard(answers, int(match[1]))
            yield f'hard prefix, d = {match[1]}', _largest(actions(hard), expected)


def _guided(answers: Answers, match: re.Match[str]) -> RtcInputs:
    previous = answers['prev_chunk']
    batch, horizon, _ = previous.shape
    schedule = Schedule(match['schedule'])
    row = prefix_weights(horizon, int(match['d']), int(match['end']), schedule)
    return RtcInputs(
        previous=previous,
        weights=torch.from_numpy(row).to(previous.device).expand(batch, -1),
        max_gain=float(match['beta']),
        jacobian=Jacobian(match['jacobian']),
    )


def _hard(answers: Answers, steps: int) -> RtcInputs:
    previous = answers['prev_chunk']
    rows = torch.arange(previous.shape[1], device=previous.device) < steps
    return RtcInputs(
        previous=previous,
        weights=torch.zeros(previous.shape[:2], device=previous.device),
        frozen=rows.expand(previous.shape[:2]),
    )


def _largest(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape:
        raise ValueError(f'an answer has shape {tuple(expected.shape)}, not {tuple(found.shape)}')
    return float((found.float() - expected.float()).abs().max())
