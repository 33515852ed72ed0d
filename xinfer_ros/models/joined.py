# SPDX-License-Identifier: Apache-2.0
"""Linear layers of one input as one matrix product, without a second copy of their weights."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

MadeT = TypeVar('MadeT')


class Prepared(nn.Module, Generic[MadeT]):
    """
    A module that keeps something it has made of its weights, and works without it too.

    What moves, converts or loads weights by torch's ways drops it. Who sets the data of a single
    weight must prepare again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: MadeT | None = None

    @property
    def is_prepared(self) -> bool:
        """Tell whether it is there."""
        return self._made is not None

    def prepare(self) -> None:
        """Make it, now that the weights are where they stay and have their type."""
        raise NotImplementedError

    def _apply(self, *arguments: Any, **options: Any) -> Any:
        """Drop what was made of weights that are moved or converted."""
        self._made = None
        return super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        """Drop what was made of weights that are replaced."""
        self._made = None
        super()._load_from_state_dict(*arguments, **options)


class Joined(Prepared[tuple[Tensor, Tensor | None]]):
    """
    A module some of whose linear layers have the same input.

    ``prepare`` puts their weights behind each other in one piece of memory; the layers keep their
    names and become views of it.
    """

    def _together(self) -> Sequence[nn.Linear]:
        """Return the layers, in the order of their outputs; all have a bias or none has."""
        raise NotImplementedError

    def places(self) -> tuple[int, ...]:
        """Return what tells where the layers' weights are; equal for modules that share them."""
        weights = [part for layer in self._together() for part in layer.parameters(recurse=False)]
        return tuple(weight.data_ptr() or id(weight) for weight in weights)

    @torch.no_grad()
    def prepare(self) -> None:
        """Join the layers, unless they have inputs of different widths."""
        layers = self._together()
        if len({layer.in_features for layer in layers}) > 1:
            return
        weight = torch.cat([layer.weight for layer in layers])
        bias = None
        if all(layer.bias is not None for layer in layers):
            bias = torch.cat([layer.bias for layer in layers])
        self._use(weight, bias)

    def share(self, other: 'Joined') -> None:
        """Join the layers in the memory of another module's, whose weights are the same."""
        if other._made is not None:
            self._use(*other._made)

    def _use(self, weight: Tensor, bias: Tensor | None) -> None:
        layers = self._together()
        widths = [layer.out_features for layer in layers]
        for layer, own in zip(layers, weight.split_with_sizes(widths), strict=True):
            layer.weight.data = own
        if bias is not None:
            for layer, own in zip(layers, bias.split_with_sizes(widths), strict=True):
                layer.bias.data = own
        self._made = weight, bias

    def joined(self, x: Tensor) -> Tensor:
        """Return the outputs of all layers behind each other, ``(..., sum of their widths)``."""
        if self._made is None:
            return torch.cat([layer(x) for layer in self._together()], dim=-1)
        return functional.linear(x, *self._made)


def prepare(model: nn.Module) -> None:
    """Prepare every part of a model that can be prepared, once the weights stay as they are."""
    joined: dict[tuple[int, ...], list[Joined]] = {}
    for module in model.modules():
        if isinstance(module, Joined):
            joined.setdefault(module.places(), []).append(module)
        elif isinstance(module, Prepared):
            module.prepare()
    for first, *others in joined.values():
        first.prepare()
        for other in others:
            other.share(first)
    cuda: Any = torch.cuda  # whose stubs have no types
    if cuda.is_initialized():  # or the memory of the weights' first copies stays reserved
        cuda.empty_cache()
