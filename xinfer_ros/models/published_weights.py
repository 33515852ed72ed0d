# SPDX-License-Identifier: Apache-2.0
"""Weights of a published layout, matched strictly to the names of a model of ours."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from xinfer_ros.models.weight_files import Shape, WeightFiles, expect_shapes

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """
    Some rows of a stored weight.

    :param stored: its name
    :param start: first row
    :param stop: row behind the last one
    """

    stored: str
    start: int
    stop: int


Pieces = Mapping[str, Piece]


def whole_pieces(
    files: WeightFiles, *, prefix: str = '', left_out: Collection[str] = ()
) -> Pieces:
    """
    Return every stored weight as one piece, by its name without a prefix.

    :param prefix: of names, cut off
    :param left_out: beginnings of names that are no weights
    """
    return {
        name.removeprefix(prefix): Piece(stored=name, start=0, stop=shape[0] if shape else 0)
        for name, shape in files.shapes.items()
        if not name.startswith(tuple(left_out))
    }


def piece_shapes(files: WeightFiles, pieces: Pieces) -> dict[str, Shape]:
    """Return the shape of each piece."""
    return {
        name: (piece.stop - piece.start, *files.shapes[piece.stored][1:])
        if files.shapes[piece.stored]
        else ()
        for name, piece in pieces.items()
    }


def fill(
    model: nn.Module,
    files: WeightFiles,
    pieces: Pieces,
    published: Callable[[str], str],
    *,
    unused: Iterable[str] = (),
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> None:
    """
    Give a model its weights.

    :param model: on the meta device
    :param pieces: by published name
    :param published: gives the published name of an own one; several may share one
    :param unused: published names that may be stored though nothing reads them
    :param device: where the weights shall live
    :param dtype: what they are converted to
    :param progress: is told the weights read so far, and all
    :raises ModelError: if a weight is missing, surplus or of another shape; the text names it
    """
    weights = model.state_dict()
    own: dict[str, list[str]] = {}
    for name in weights:
        own.setdefault(published(name), []).append(name)
    shapes = piece_shapes(files, pieces)
    wanted = {name: tuple(weights[ours[0]].shape) for name, ours in own.items()}
    expect_shapes(shapes, wanted, unused=unused, source=files.folder)
    by_stored: dict[str, list[str]] = {}
    for name in own:
        by_stored.setdefault(pieces[name].stored, []).append(name)
    for count, (stored, weight) in enumerate(files.read(by_stored, device), start=1):
        converted = weight.to(dtype)
        for name in by_stored[stored]:
            rows = converted[pieces[name].start : pieces[name].stop]
            weights.update(dict.fromkeys(own[name], rows))
        if progress is not None:
            progress(count, len(by_stored))
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False).eval()


def renamed(name: str, prefixes: Mapping[str, str]) -> str:
    """Return ``name`` with the first prefix that fits replaced."""
    for ours, theirs in prefixes.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def count_layers(names: Iterable[str], prefix: str) -> int:
    """Return how many numbered layers there are behind a prefix of names."""
    heads = {name.removeprefix(prefix).split('.')[0] for name in names if name.startswith(prefix)}
    return len({head for head in heads if head.isdigit()})
