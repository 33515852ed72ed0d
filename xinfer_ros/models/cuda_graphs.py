# SPDX-License-Identifier: Apache-2.0
"""Stages run by a CUDA device as captured graphs, each worker of a lane on a stream of its own."""

from typing import Any

import torch

from xinfer_ros.core.stage import Stage
from xinfer_ros.models.programs import ProgramKey, Recipe, Replay
from xinfer_ros.models.staging import Area

# At least 3, all on the stream that captures: libraries choose kernels and take memory then.
_WARM_UP_RUNS = 3
_PRIORITIES = {Stage.VIT: 0, Stage.PREFILL: 0, Stage.ACTION: -1}  # a lower one goes first


class CudaGraphs:
    """
    Makes functions repeatable as CUDA graphs.

    :param device: with an index
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._workers: dict[tuple[Stage, int], _Worker] = {}

    @property
    def memory(self) -> torch.device:
        """Return the device."""
        return self._device

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs."""
        return sum(worker.num_recorded for worker in self._workers.values())

    def record(self, key: ProgramKey, recipe: Recipe, inputs: Area, outputs: Area) -> Replay:
        """Return what runs the recipe's graph on the stream of the key's worker."""
        place = (key.stage, key.worker)
        if place not in self._workers:
            self._workers[place] = _Worker(self._device, _PRIORITIES[key.stage])
        return self._workers[place].record(recipe, inputs, outputs)


class _Worker:
    """
    A stream and the graphs that run on it, one at once.

    They share memory: none of them leaves anything there that another might overwrite, as state,
    inputs and outputs lie outside, so they may run in any order. Another worker has another pool,
    since its graphs run at the same time.
    """

    def __init__(self, device: torch.device, priority: int) -> None:
        cuda: Any = torch.cuda  # its streams and events have no types
        self._stream: torch.cuda.Stream = cuda.Stream(device, priority=priority)
        self._pool = torch.cuda.graph_pool_handle()
        # The thread sleeps until it is done, without the interpreter's lock; the driver never
        # calls Python.
        self._done: torch.cuda.Event = cuda.Event(blocking=True)
        self.num_recorded = 0

    @torch.no_grad()
    def record(self, recipe: Recipe, inputs: Area, outputs: Area) -> Replay:
        """Warm up, capture, and return what launches the graph and waits for its end."""
        tensors, stream = recipe.tensors(inputs, outputs), self._stream
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        with torch.cuda.stream(stream):
            inputs.upload()
            for _ in range(_WARM_UP_RUNS):
                recipe.function(*tensors)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile: only what this one does is captured.
        with torch.cuda.graph(
            graph, pool=self._pool, stream=stream, capture_error_mode='thread_local'
        ):
            recipe.function(*tensors)
        self.num_recorded += 1

        def replay() -> None:
            with torch.cuda.stream(stream):
                inputs.upload()
                graph.replay()
                outputs.download()
                self._done.record(stream)
            self._done.synchronize()

        return replay
