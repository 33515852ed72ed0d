# SPDX-License-Identifier: Apache-2.0
"""The weights of a π0.5 folder in the published layout, read strictly."""

from collections.abc import Callable
from pathlib import Path

import torch

from xinfer_ros.models.pi05 import Pi05, Pi05Config
from xinfer_ros.models.weight_files import WeightFiles, expect_shapes

PALIGEMMA = 'paligemma_with_expert.paligemma.'
EXPERT = 'paligemma_with_expert.gemma_expert.'
_EMBEDDING = PALIGEMMA + 'model.language_model.embed_tokens.weight'
_TIED_HEAD = PALIGEMMA + 'lm_head.weight'
# Present in published files though π0.5 never predicts a token.
_UNUSED = (_TIED_HEAD, EXPERT + 'lm_head.weight')
_PUBLISHED = {
    'vision.': PALIGEMMA + 'model.vision_tower.vision_model.',
    'projector.': PALIGEMMA + 'model.multi_modal_projector.linear.',
    'language.': PALIGEMMA + 'model.language_model.',
    'expert.': EXPERT + 'model.',
}
# Norms of the language model; published code runs them in float32 whatever the model's type.
_LANGUAGE_NORM = 'norm.weight'
# What the flow's constants come from. They are computed once, in float32, before it is narrowed.
_WIDE_UNTIL_FIXED = ('time_mlp', 'action_in_proj', 'action_out_proj', 'norm.dense')


def published_name(name: str) -> str:
    """Return the name that published files give to the parameter ``name`` of ``Pi05``."""
    for ours, theirs in _PUBLISHED.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def load_pi05(
    folder: Path,
    config: Pi05Config,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    progress: Callable[[int, int], None] | None = None,
) -> Pi05:
    """
    Return the model of a folder, ready to run.

    :param folder: holds ``model.safetensors``
    :param config: the sizes that the weights must have
    :param device: where the model shall live
    :param dtype: what the weights are converted to, but for norms, which stay float32
    :param progress: is told the weights read so far, and all
    :raises ModelError: if the file is absent or unreadable, or a weight is missing, surplus or of
        another shape; the text names it
    """
    files = WeightFiles(folder)
    with torch.device('meta'):
        model = Pi05(config)
    own = {published_name(name): name for name in model.state_dict()}
    sources = dict(own)
    if _EMBEDDING not in files.shapes and _TIED_HEAD in files.shapes:
        sources[_TIED_HEAD] = sources.pop(_EMBEDDING)
    weights = model.state_dict()
    shapes = {theirs: tuple(weights[ours].shape) for theirs, ours in sources.items()}
    expect_shapes(files.shapes, shapes, unused=_UNUSED, source=folder)
    for count, (theirs, weight) in enumerate(files.read(sources, device), start=1):
        ours = sources[theirs]
        weights[ours] = weight.to(torch.float32 if _wide(ours) else dtype)
        if progress is not None:
            progress(count, len(sources))
    model.load_state_dict(weights, strict=True, assign=True)
    weights.clear()  # joined layers have copies, and nobody needs both
    model.requires_grad_(False).eval()
    model.fix_times()
    for name, parameter in model.named_parameters():
        if not _language_norm(name):
            parameter.data = parameter.data.to(dtype)
    return model


def _wide(name: str) -> bool:
    """Tell whether a weight is read in float32."""
    return _language_norm(name) or any(part in name for part in _WIDE_UNTIL_FIXED)


def _language_norm(name: str) -> bool:
    return name.startswith('language.') and name.endswith(_LANGUAGE_NORM)
