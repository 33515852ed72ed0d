# SPDX-License-Identifier: Apache-2.0
"""Prompts and their token ids."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.models.tokenizer import (
    ByteTokenizer,
    digitise_state,
    longest_state_prompt_bytes,
    state_prompt,
)


def test_ids_begin_with_the_begin_token_and_are_one_a_byte() -> None:
    assert ByteTokenizer().encode('Aé') == [2, 3 + 0x41, 3 + 0xC3, 3 + 0xA9]


@given(st.text(max_size=40))
def test_every_id_is_in_the_vocabulary(text: str) -> None:
    ids = ByteTokenizer().encode(text)
    assert len(ids) == 1 + len(text.encode())
    assert all(0 <= token < ByteTokenizer.vocabulary for token in ids)


def test_state_falls_into_256_bins() -> None:
    state = np.array([-2, -1, -0.995, 0, 0.9999, 1, 3], np.float32)
    assert digitise_state(state) == [-1, 0, 0, 128, 255, 255, 255]


def test_prompt_is_that_of_the_published_model() -> None:
    prompt = state_prompt('  pick_up\nthe cube ', np.array([-1, 0, 1], np.float32))
    assert prompt == 'Task: pick up the cube, State: 0 128 255;\nAction: '


def test_state_is_padded_to_a_width_before_it_is_written() -> None:
    """Both published conventions: as many numbers as joints, or 32 whatever the joints."""
    state = np.array([-1, 1], np.float32)
    assert state_prompt('x', state) == 'Task: x, State: 0 255;\nAction: '
    assert state_prompt('x', state, 4) == 'Task: x, State: 0 255 128 128;\nAction: '
    assert state_prompt('x', state, 1) == state_prompt('x', state)


@given(st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=14))
def test_no_state_makes_a_longer_prompt_than_announced(state: list[float]) -> None:
    prompt = state_prompt('', np.array(state, np.float32))
    assert len(prompt.encode()) <= longest_state_prompt_bytes(len(state))
    padded = state_prompt('', np.array(state, np.float32), 32)
    assert len(padded.encode()) <= longest_state_prompt_bytes(len(state), 32)
