# SPDX-License-Identifier: Apache-2.0
"""Prompts of SmolVLA and Wall-OSS."""

import numpy as np
import pytest

from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.errors import Rejected
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.models.family_processor import (
    MarkedTokenizer,
    SmolVlaProcessor,
    WallProcessor,
    wall_prompt,
)
from xinfer_ros.models.normalise import MeanStdStatistics
from xinfer_ros.models.tokenizer import ByteTokenizer

from .filled_slots import empty_slots, write_instruction

_STATISTICS = MeanStdStatistics(mean=np.full(14, 2.0), std=np.full(14, 4.0))
_WORDS = {'<|image_pad|>': 300, '<|propri|>': 301, '<|im_start|>': 302, '<|im_end|>': 303,
          '<|vision_start|>': 304, '<|vision_end|>': 305}  # fmt: skip
_MARKED = MarkedTokenizer(rest=ByteTokenizer(), words=_WORDS)


@pytest.fixture
def slots() -> SlotArrays:
    """Return one empty slot."""
    return empty_slots(aloha_contract('test', 100), 1)


def _smolvla(room: int = 48) -> SmolVlaProcessor:
    return SmolVlaProcessor(
        statistics=_STATISTICS,
        action_space=ActionSpace(statistics=_STATISTICS),
        tokenizer=MarkedTokenizer(rest=ByteTokenizer(), words={}),
        prompt_tokens=room,
        model_name='test',
    )


def _text(ids: list[int]) -> str:
    return bytes(token - ByteTokenizer.first_byte_id for token in ids).decode()


@pytest.mark.parametrize('instruction', ['pick a cube', 'pick a cube\n'])
def test_smolvla_is_asked_with_one_line_end(slots: SlotArrays, instruction: str) -> None:
    write_instruction(slots, 0, instruction)
    assert _text(_smolvla().prompt(slots, 0)) == 'pick a cube\n'


def test_prompt_that_is_too_long_is_refused_and_never_cut(slots: SlotArrays) -> None:
    write_instruction(slots, 0, 'x' * 48)
    with pytest.raises(Rejected, match='needs 49 tokens, test has room for 48'):
        _smolvla().prompt(slots, 0)


def test_state_and_actions_go_through_mean_and_deviation(slots: SlotArrays) -> None:
    slots.state[0] = 6.0
    np.testing.assert_allclose(_smolvla().state(slots, 0), np.ones(14), atol=1e-6)
    rows = np.ones((16, 14), np.float32)
    np.testing.assert_allclose(_smolvla().actions(rows, slots, 0), 6.0 * rows, atol=1e-6)


def test_prompt_of_wall_oss_is_the_published_one() -> None:
    assert wall_prompt('stack the cubes', [('front view', 2), ('left wrist view', 1)]) == (
        '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n'
        'Observation: front view: <|vision_start|><|image_pad|><|image_pad|><|vision_end|>'
        ' left wrist view: <|vision_start|><|image_pad|><|vision_end|>\n'
        'Instruction: stack the cubes\nPredict the next action in robot action.\n'
        'Proprioception: <|propri|>\n<|im_end|>\n<|im_start|>assistant\n'
    )


def test_missing_camera_is_not_mentioned(slots: SlotArrays) -> None:
    processor = WallProcessor(
        statistics=_STATISTICS,
        action_space=ActionSpace(statistics=_STATISTICS),
        tokenizer=_MARKED,
        prompt_tokens=400,
        model_name='test',
        views=('front view', 'left view', 'right view'),
        view_tokens=(3, 5, 7),
    )
    write_instruction(slots, 0, 'go')
    slots.camera_present[0] = (True, False, True)
    ids = processor.prompt(slots, 0)
    assert (ids.count(300), ids.count(301), ids.count(304)) == (10, 1, 2)
    assert 'left view' not in _text([token for token in ids if token < 300])


def test_marked_words_are_one_token_each_and_no_begin_is_put_first() -> None:
    assert _MARKED.encode('a<|im_end|><|propri|>b') == [3 + ord('a'), 303, 301, 3 + ord('b')]
    assert _MARKED.encode('') == []
    assert _MARKED.vocabulary == 306
