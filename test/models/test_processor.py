# SPDX-License-Identifier: Apache-2.0
"""Between slots and a π0.5 model: prompts, leftovers, actions."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.normalise import MeanStdStatistics, QuantileStatistics
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.models.tokenizer import ByteTokenizer

from .filled_slots import empty_slots, write_instruction

_STATE = MeanStdStatistics(mean=np.array([0.25, -0.5]), std=np.array([0.5, 0.1]))
_ACTION = QuantileStatistics(q01=np.array([-0.5, 0.0]), q99=np.array([0.5, 1.0]))
_PROMPT = StatePrompt(statistics=_STATE, tokenizer=ByteTokenizer(), tokens=80, model_name='folded')
_PROCESSOR = Pi05Processor(
    state_prompt=_PROMPT,
    action_space=ActionSpace(statistics=_ACTION, relative=np.array([True, False])),
)


@pytest.fixture
def slots() -> SlotArrays:
    """Return one slot of a robot with two joints at the mean of the statistics."""
    contract = replace(echo_contract(), joint_names=('elbow', 'gripper'))
    slots = empty_slots(contract, 1)
    slots.state[0] = _STATE.mean
    write_instruction(slots, 0, 'fold it')
    return slots


def _text(ids: list[int]) -> str:
    return bytes(token - ByteTokenizer.first_byte_id for token in ids[1:]).decode()


def test_prompt_tells_the_instruction_and_the_state(slots: SlotArrays) -> None:
    """A state that is the stored mean is 0.0, the middle of 256 bins (case SL-08)."""
    ids = _PROCESSOR.prompt(slots, 0)
    assert ids[0] == ByteTokenizer.begin_id
    assert _text(ids) == 'Task: fold it, State: 128 128;\nAction: '


def test_state_is_padded_first_for_checkpoints_trained_so(slots: SlotArrays) -> None:
    padded = replace(_PROMPT, state_width=4)
    slots.state[0] = _STATE.mean + _STATE.std
    processor = replace(_PROCESSOR, state_prompt=padded)
    assert _text(processor.prompt(slots, 0)) == 'Task: fold it, State: 255 255 128 128;\nAction: '


def test_state_is_left_out_for_checkpoints_trained_so(slots: SlotArrays) -> None:
    processor = replace(_PROCESSOR, state_prompt=replace(_PROMPT, state_width=None))
    assert _text(processor.prompt(slots, 0)) == 'fold it\n'


def test_leftover_is_relative_to_the_state_of_this_observation(slots: SlotArrays) -> None:
    slots.leftover[0] = slots.state[0]
    slots.leftover[0, 3:] += np.array([0.5, 0.2], np.float32)
    seen = _PROCESSOR.leftover(slots, 0)
    np.testing.assert_allclose(seen[:3], [[0.0, -2.0]] * 3, atol=1e-6)
    np.testing.assert_allclose(seen[3:, 0], 1.0, atol=1e-6)
    np.testing.assert_allclose(_PROCESSOR.actions(seen, slots, 0), slots.leftover[0], atol=1e-6)


def test_prompt_that_does_not_fit_is_refused(slots: SlotArrays) -> None:
    write_instruction(slots, 0, 'x' * 90)
    with pytest.raises(Rejected, match=r'folded has room for 80; shorten the .* of 90') as caught:
        _PROCESSOR.prompt(slots, 0)
    assert caught.value.reason is Reason.REJECTED_INSTRUCTION


def test_token_that_the_model_lacks_is_refused(slots: SlotArrays) -> None:
    """An id outside of the embedding would break a CUDA device for every robot."""
    small = replace(_PROMPT, vocabulary=ByteTokenizer.first_byte_id + ord('z'))
    processor = replace(_PROCESSOR, state_prompt=small)
    processor.prompt(slots, 0)
    write_instruction(slots, 0, 'zip it')
    with pytest.raises(Rejected, match='has token 125, folded knows those below 125') as caught:
        processor.prompt(slots, 0)
    assert caught.value.reason is Reason.REJECTED_INSTRUCTION


def test_instruction_that_is_not_utf8_is_refused(slots: SlotArrays) -> None:
    slots.instruction[0, 0] = 0xFF
    with pytest.raises(Rejected, match='not UTF-8'):
        _PROCESSOR.prompt(slots, 0)
