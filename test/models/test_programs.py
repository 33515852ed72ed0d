# SPDX-License-Identifier: Apache-2.0
"""Programs: which one a batch gets, and the memory that they work on."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError
from xinfer_ros.models.programs import Programs, Recipe, Recorder, prompt_rooms
from xinfer_ros.models.staging import Area, Field
from xinfer_ros.models.traced import Direct, Traces

_PLAN = LanePlan(num_states=4, workers=(1, 2, 1), max_batch=(2, 3, 1))
_FIELDS = (
    Field(name='ids', shape=(3,), dtype=np.int64, fill=7),
    Field(name='there', shape=(3, 1), dtype=np.bool_, fill=1),
    Field(name='rows', shape=(3, 5), dtype=np.float32),
)
_CPU = torch.device('cpu')


def _programs(recorder: Recorder, state: Tensor) -> Programs:
    """Return programs that add rows to some states and tell the sums."""

    def add(state: Tensor, ids: Tensor, rows: Tensor, sums: Tensor) -> Tensor:
        found = state.index_select(0, ids) + rows
        state.index_copy_(0, ids, found)
        return sums.copy_(found.sum(1))

    def recipe(stage: Stage, batch: int, room: int) -> Recipe:
        return Recipe(
            function=add,
            state=(state,),
            inputs=(
                Field(name='ids', shape=(batch,), dtype=np.int64),
                Field(name='rows', shape=(batch, state.shape[1]), dtype=np.float32),
            ),
            outputs=(Field(name='sums', shape=(batch,), dtype=np.float32),),
        )

    return Programs(_PLAN, (64, 128, 200), recorder, recipe)


def test_arrays_and_tensors_of_an_area_are_the_same_memory() -> None:
    area = Area(_FIELDS, None)
    area.arrays['rows'][1, 2] = 5
    assert area.tensors['rows'][1, 2] == 5
    assert area.tensors['ids'].tolist() == [7, 7, 7]
    assert area.tensors['there'].dtype is torch.bool
    assert area.tensors['there'].all()
    assert not area.tensors['rows'][0].any()


def test_area_on_a_device_is_another_block_until_it_is_copied() -> None:
    area = Area(_FIELDS, _CPU)
    assert area.tensors['ids'].tolist() == [0, 0, 0]
    area.upload()
    assert area.tensors['ids'].tolist() == [7, 7, 7]
    area.tensors['rows'][2, 4] = 3
    assert area.arrays['rows'][2, 4] == 0
    area.download()
    assert area.arrays['rows'][2, 4] == 3
    area.arrays['there'][:] = False
    assert area.tensors['there'].all()


@pytest.mark.parametrize(
    ('longest', 'rooms'),
    [(200, (64, 128, 200)), (192, (64, 128, 192)), (48, (48,)), (64, (64,)), (90, (90,))],
)
def test_rooms_are_steps_of_64_tokens_and_the_longest_prompt(
    longest: int, rooms: tuple[int, ...]
) -> None:
    assert prompt_rooms(longest) == rooms


def test_rooms_that_no_prompt_fits_are_left_out() -> None:
    assert prompt_rooms(512, 400) == (448, 512)
    assert prompt_rooms(445, 415) == (445,)
    assert prompt_rooms(200, 64) == (64, 128, 200)


def test_every_size_of_the_plan_has_a_program_for_every_worker_and_room() -> None:
    programs = _programs(Direct(_CPU), torch.zeros(4, 5))
    assert len(programs) == 2 + 2 * 3 * 3 + 3
    keys = {
        programs.find(Stage.PREFILL, batch, tokens, worker).key
        for batch in (1, 2, 3)
        for tokens in (1, 100, 200)
        for worker in (0, 1)
    }
    assert len(keys) == 18


@pytest.mark.parametrize(('tokens', 'room'), [(0, 64), (64, 64), (65, 128), (200, 200)])
def test_batch_gets_the_smallest_room_that_fits(tokens: int, room: int) -> None:
    programs = _programs(Direct(_CPU), torch.zeros(4, 5))
    assert programs.find(Stage.ACTION, 1, tokens, 0).key.prompt_tokens == room
    assert programs.find(Stage.VIT, 1, tokens, 0).key.prompt_tokens == 0


@pytest.mark.parametrize(
    ('batch', 'tokens', 'worker'), [(4, 10, 0), (0, 10, 0), (1, 201, 0), (1, 10, 2)]
)
def test_what_the_plan_has_not_is_an_error_that_tells_the_plan(
    batch: int, tokens: int, worker: int
) -> None:
    programs = _programs(Direct(_CPU), torch.zeros(4, 5))
    with pytest.raises(ModelError, match='batches of 1 to 3, workers 0 to 1 and room for 200'):
        programs.find(Stage.PREFILL, batch, tokens, worker)


def test_graph_of_the_largest_batch_serves_all_batches_and_workers() -> None:
    """SL-06: after the start no run records anything."""
    recorder, state = Traces(), torch.zeros(4, 5)
    programs = _programs(recorder, state)
    made = programs.num_recorded
    assert made == 1 + 3 + 3  # a stage and room each
    for batch in (1, 2, 3):
        for worker in (0, 1):
            state.zero_()
            program = programs.find(Stage.PREFILL, batch, 70, worker)
            program.inputs['ids'][:] = [3, 0, 2][:batch]
            program.inputs['rows'][:] = np.arange(batch * 5).reshape(batch, 5)
            program.run()
            program.run()
            expected = 2 * np.arange(batch * 5).reshape(batch, 5)
            np.testing.assert_array_equal(program.outputs['sums'], expected.sum(1))
            np.testing.assert_array_equal(state[[3, 0, 2][:batch]], expected)
            assert not state[1].any()
    assert programs.num_recorded == made


def test_batch_for_which_the_shared_graph_fails_has_one_of_its_own() -> None:
    recorder = Traces()

    def recipe(stage: Stage, batch: int, room: int) -> Recipe:
        def total(x: Tensor, out: Tensor) -> Tensor:
            return out.copy_(x.view(len(x), 2, -1).sum((1, 2)))  # len() is a number, not a size

        return Recipe(
            function=total,
            state=(),
            inputs=(Field(name='x', shape=(batch, 4), dtype=np.float32),),
            outputs=(Field(name='total', shape=(batch,), dtype=np.float32),),
        )

    plan = LanePlan(num_states=1, max_batch=(3, 1, 1), workers=(2, 1, 1))
    programs = Programs(plan, (8,), recorder, recipe)
    assert recorder.num_recorded == 3 + 1 + 1
    for batch in (1, 2, 3):
        program = programs.find(Stage.VIT, batch, 0, 1)
        program.inputs['x'][:] = np.arange(batch * 4).reshape(batch, 4)
        program.run()
        np.testing.assert_array_equal(program.outputs['total'], program.inputs['x'].sum(1))
    assert recorder.num_recorded == 5


def test_workers_do_not_share_inputs_or_outputs() -> None:
    """SL-01: two units of one stage at once."""
    programs = _programs(Traces(), torch.zeros(4, 5))

    def total(worker: int) -> set[float]:
        program = programs.find(Stage.PREFILL, 1, 1, worker)
        program.inputs['ids'][:] = worker
        program.inputs['rows'][:] = worker
        found = set()
        for run in range(1, 300):
            program.run()
            found.add(float(program.outputs['sums'][0]) / run)
        return found

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(total, (0, 1))) == [{0.0}, {5.0}]


def test_function_that_asks_for_gradients_is_called_and_not_traced() -> None:
    recorder = Traces()

    def recipe(stage: Stage, batch: int, room: int) -> Recipe:
        def slope(x: Tensor, out: Tensor) -> Tensor:
            with torch.enable_grad():
                start = x.clone().requires_grad_()
                (found,) = torch.autograd.grad((start**2).sum(), start)
            return out.copy_(found)

        shape = (batch, 2)
        return Recipe(
            function=slope,
            state=(),
            inputs=(Field(name='x', shape=shape, dtype=np.float32),),
            outputs=(Field(name='slope', shape=shape, dtype=np.float32),),
            differentiates=True,
        )

    program = Programs(_PLAN, (8,), recorder, recipe).find(Stage.VIT, 1, 0, 0)
    program.inputs['x'][:] = [[1, 3]]
    program.run()
    np.testing.assert_array_equal(program.outputs['slope'], [[2, 6]])
    assert recorder.num_recorded == 0
