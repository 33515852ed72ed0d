# SPDX-License-Identifier: Apache-2.0
"""
Programs: a stage at one size over memory that never moves, made at start and run ever after.

Nothing is captured, traced or compiled once all are there, so no request ever waits for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.staging import Area, Field

_BUCKET_TOKENS = 64

Replay = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramKey:
    """
    Which program.

    :param stage: the stage
    :param batch: number of requests
    :param prompt_tokens: room for the prompt of each; 0 in ViT, which knows none
    :param worker: of the lane, from 0
    """

    stage: Stage
    batch: int
    prompt_tokens: int
    worker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """
    What a program does.

    :param function: takes the tensors of ``state``, ``inputs`` and ``outputs``, works
        in place on the first and the last, takes sizes from shapes, never asks the device for a
        value, and returns a tensor
    :param state: tensors that programs of several workers and stages share
    :param inputs: what changes from run to run
    :param outputs: what the host is told
    :param differentiates: whether the function asks for gradients, which can't be traced
    """

    function: Callable[..., Tensor]
    state: tuple[Tensor, ...]
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...] = ()
    differentiates: bool = False

    def tensors(self, inputs: Area, outputs: Area) -> tuple[Tensor, ...]:
        """Return what the function is called with."""
        return (*self.state, *inputs.tensors.values(), *outputs.tensors.values())


class Recorder(Protocol):
    """What makes a function repeatable on one kind of device."""

    @property
    def memory(self) -> torch.device | None:
        """Return where inputs and outputs lie for the device; None if in host memory."""
        ...

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs that have been captured or traced so far."""
        ...

    def record(self, key: ProgramKey, recipe: Recipe, inputs: Area, outputs: Area) -> Replay:
        """
        Return what runs the recipe on the areas and returns when the host has the outputs.

        It is as fast as it gets at once. Replays of one worker of one stage never overlap.
        """
        ...


class Program:
    """
    A stage at one size for one worker.

    :param recipe: what it does
    :param key: which one it is
    :param recorder: makes it repeatable
    """

    def __init__(self, recipe: Recipe, key: ProgramKey, recorder: Recorder) -> None:
        self.key = key
        inputs = Area(recipe.inputs, recorder.memory)
        outputs = Area(recipe.outputs, recorder.memory)
        self.inputs, self.outputs = inputs.arrays, outputs.arrays
        self.run: Replay = recorder.record(key, recipe, inputs, outputs)


class Programs:
    """
    All programs of a model.

    :param plan: batches and workers of each stage
    :param rooms: for prompts, ascending; a batch takes the smallest that fits [tokens]
    :param recorder: makes them repeatable
    :param recipe: gives what to do for a stage, a batch and a room
    """

    def __init__(
        self,
        plan: LanePlan,
        rooms: tuple[int, ...],
        recorder: Recorder,
        recipe: Callable[[Stage, int, int], Recipe],
    ) -> None:
        self._plan, self._rooms, self._recorder = plan, rooms, recorder
        self._programs: dict[ProgramKey, Program] = {}
        for key in self._declared():
            made = recipe(key.stage, key.batch, key.prompt_tokens)
            self._programs[key] = Program(made, key, recorder)

    @property
    def num_recorded(self) -> int:
        """Return the number of graphs that have been captured or traced so far."""
        return self._recorder.num_recorded

    def __len__(self) -> int:
        """Return the number of programs."""
        return len(self._programs)

    def find(self, stage: Stage, batch: int, prompt_tokens: int, worker: int) -> Program:
        """
        Return the program that fits.

        :param prompt_tokens: of the longest prompt of the batch; without effect in ViT
        :raises ModelError: if the plan has no such batch, worker or prompt
        """
        room = 0
        if stage is not Stage.VIT:
            room = next((room for room in self._rooms if room >= prompt_tokens), -1)
        key = ProgramKey(stage=stage, batch=batch, prompt_tokens=room, worker=worker)
        if key not in self._programs:
            raise ModelError(
                f'{stage.name} of {batch} requests with up to {prompt_tokens} prompt tokens by '
                f'worker {worker} was not prepared; the plan has batches of 1 to '
                f'{self._plan.max_batch[stage]}, workers 0 to {self._plan.workers[stage] - 1} and '
                f'room for {self._rooms[-1]} tokens'
            )
        return self._programs[key]

    def run_all(self) -> None:
        """Run every program once on what its areas hold."""
        for program in self._programs.values():
            program.run()

    def _declared(self) -> list[ProgramKey]:
        """Return every key; a worker's largest come first, the others fit into their memory."""
        return [
            ProgramKey(stage=stage, batch=batch, prompt_tokens=room, worker=worker)
            for stage in Stage
            for worker in range(self._plan.workers[stage])
            for batch in range(self._plan.max_batch[stage], 0, -1)
            for room in (reversed(self._rooms) if stage is not Stage.VIT else (0,))
        ]


def prompt_rooms(longest: int, shortest: int = 1) -> tuple[int, ...]:
    """
    Return rooms for prompts, so that short ones do not pay for padding: (64, 128, 200) for 200.

    :param longest: the last room [tokens]
    :param shortest: prompt that is worth a room [tokens]
    """
    steps = range(_BUCKET_TOKENS, longest - _BUCKET_TOKENS // 2 + 1, _BUCKET_TOKENS)
    return (*(room for room in steps if room >= shortest), longest)
