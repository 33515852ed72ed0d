# SPDX-License-Identifier: Apache-2.0
"""Stages run by the host: as traced graphs, or by Python itself."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from xinfer_ros.core.stage import Stage
from xinfer_ros.models.programs import ProgramKey, Recipe, Replay
from xinfer_ros.models.staging import Area

Function = Callable[..., Tensor]


class Traces:
    """
    Makes functions repeatable as traced graphs, for small models on a CPU.

    There a small operation costs more to call than to do. A graph runs without Python, so it is
    about twice as fast, and the lanes do not wait for each other's interpreter lock. A graph keeps
    nothing between its calls and asks its inputs for their sizes, so that of the largest batch
    serves every batch and worker of a stage; a batch for which it fails has one of its own. It is
    run as it was traced: torch's optimiser would start anew for every size, for no gain without a
    fuser.
    """

    def __init__(self) -> None:
        self._graphs: list[Function] = []
        self._shared: dict[tuple[Stage, int], Function] = {}
        self._own: dict[tuple[Stage, int, int], Function] = {}

    @property
    def memory(self) -> None:
        """Return None: the host's memory is the device's."""
        return None

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs."""
        return len(self._graphs)

    def record(self, key: ProgramKey, recipe: Recipe, inputs: Area, outputs: Area) -> Replay:
        """Return what runs the recipe's graph, or the recipe itself if it asks for gradients."""
        tensors = recipe.tensors(inputs, outputs)
        if recipe.differentiates:
            return lambda: _call(recipe.function, tensors)
        graph = self._graph(key, recipe.function, tensors)
        return lambda: _replay(graph, tensors)

    def _graph(self, key: ProgramKey, function: Function, tensors: tuple[Tensor, ...]) -> Function:
        """Return the graph of a size, which has run once."""
        place, size = (key.stage, key.prompt_tokens), (key.stage, key.prompt_tokens, key.batch)
        if size in self._own:
            return self._own[size]
        if place in self._shared:
            try:
                _replay(self._shared[place], tensors)
                return self._shared[place]
            except RuntimeError:  # the function has read the batch as a number of Python's
                self._own[size] = self._new(function, tensors)
                return self._own[size]
        self._shared[place] = self._new(function, tensors)
        return self._shared[place]

    def _new(self, function: Function, tensors: tuple[Tensor, ...]) -> Function:
        self._graphs.append(_trace(function, tensors))
        return self._graphs[-1]


class Direct:
    """
    Runs functions as they are, for large models on a CPU, and to compare.

    :param device: where the model is
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @property
    def memory(self) -> torch.device | None:
        """Return the device; None if it is the host."""
        return None if self._device.type == 'cpu' else self._device

    @property
    def num_recorded(self) -> int:
        """Return 0."""
        return 0

    def record(self, key: ProgramKey, recipe: Recipe, inputs: Area, outputs: Area) -> Replay:
        """Return what runs the recipe's function between copies of its areas."""
        tensors = recipe.tensors(inputs, outputs)

        def run() -> None:
            inputs.upload()
            _call(recipe.function, tensors)
            outputs.download()
            if self._device.type == 'cuda':
                torch.cuda.current_stream(self._device).synchronize()

        return run


@torch.no_grad()
def _call(function: Function, tensors: tuple[Tensor, ...]) -> None:
    function(*tensors)


def _replay(graph: Function, tensors: tuple[Tensor, ...]) -> None:
    with torch.inference_mode(), _as_traced():
        graph(*tensors)


@torch.inference_mode()
def _trace(function: Function, tensors: tuple[Tensor, ...]) -> Function:
    trace: Any = torch.jit.trace
    with warnings.catch_warnings(), _as_traced():
        # torch names torch.export as the successor of its tracer, but that runs in Python
        warnings.simplefilter('ignore')
        graph: Function = trace(function, tensors, check_trace=False)
        graph(*tensors)  # compiles it for the interpreter, once
    return graph


def _as_traced() -> AbstractContextManager[None]:
    """Keep torch's optimiser from graphs that run in this block, in this thread."""
    jit: Any = torch.jit  # whose names its type stubs do not export
    return jit.optimized_execution(False)
