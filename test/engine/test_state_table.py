# SPDX-License-Identifier: Apache-2.0
"""States of the model: who holds which, and in which order they go."""

import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.state_table import SlotState, StateTable


def test_request_goes_through_the_states_in_order() -> None:
    table = StateTable(2)
    seen = [table.state(7)]
    for stage in Stage:
        table.start(7, stage)
        seen.append(table.state(7))
        table.end(7, stage)
        seen.append(table.state(7))
    table.release(7)
    seen.append(table.state(7))
    vit, done = SlotState.VIT, SlotState.DONE
    assert seen == [
        SlotState.EMPTY, vit, vit, vit, SlotState.PREFILLED, SlotState.ACTION, done,
        SlotState.EMPTY,
    ]  # fmt: skip


def test_request_keeps_its_state_and_the_next_one_gets_it_when_it_is_free() -> None:
    table = StateTable(2)
    first, second = table.start(1, Stage.VIT), table.start(2, Stage.VIT)
    assert {first, second} == {0, 1}
    table.end(1, Stage.VIT)
    assert table.start(1, Stage.PREFILL) == first
    table.release(1)
    assert table.start(3, Stage.VIT) == first


def test_more_requests_than_states_is_a_mistake_of_the_scheduler() -> None:
    table = StateTable(1)
    table.start(1, Stage.VIT)
    with pytest.raises(RuntimeError, match='more requests than there are states'):
        table.start(2, Stage.VIT)


@pytest.mark.parametrize('stage', [Stage.PREFILL, Stage.ACTION])
def test_stage_before_its_turn_is_a_mistake(stage: Stage) -> None:
    table = StateTable(1)
    with pytest.raises(RuntimeError, match=f'request 1: {stage.name} starts at no state'):
        table.start(1, stage)


def test_stage_that_starts_twice_is_a_mistake() -> None:
    table = StateTable(1)
    table.start(1, Stage.VIT)
    with pytest.raises(RuntimeError, match='VIT starts at VIT'):
        table.start(1, Stage.VIT)


def test_release_of_a_request_without_state_does_nothing() -> None:
    table = StateTable(1)
    table.release(5)
    assert table.start(1, Stage.VIT) == 0
