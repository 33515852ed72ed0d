# SPDX-License-Identifier: Apache-2.0
"""Prompts: from an instruction and a state to token ids."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

_STATE_BINS = 256


class Tokenizer(Protocol):
    """What a model needs of a tokenizer."""

    @property
    def vocabulary(self) -> int:
        """Return the number of ids; all are below."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, begin-of-sequence first."""
        ...


class ByteTokenizer:
    """
    One token a byte of UTF-8; needs no vocabulary file.

    Ids are 0 padding, 1 end, 2 begin of sequence (as in Gemma), 3 + byte.
    """

    vocabulary = 3 + 256
    begin_id = 2
    first_byte_id = 3

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, begin-of-sequence first."""
        return [self.begin_id, *(self.first_byte_id + byte for byte in text.encode())]


def digitise_state(state: npt.NDArray[np.float32]) -> list[int]:
    """
    Return the bin of each joint, of 256 over [-1, 1].

    :param state: ``(action_dim,)`` normalised
    :returns: integers from -1 (below -1) to 255
    Source: openpi and LeRobot, π0.5 prompt.
    """
    edges = np.linspace(-1.0, 1.0, _STATE_BINS + 1)[:-1]
    return [int(index) for index in np.digitize(state, edges) - 1]


def cleaned(instruction: str) -> str:
    """Return an instruction as it stands in a prompt. Source: openpi and LeRobot."""
    return instruction.strip().replace('_', ' ').replace('\n', ' ')


def stateless_prompt(instruction: str) -> str:
    """
    Return the prompt of a π0.5 that was trained without the state in it.

    Source: openpi, ``discrete_state_input`` False.
    """
    return f'{cleaned(instruction)}\n'


def state_prompt(instruction: str, state: npt.NDArray[np.float32], width: int = 0) -> str:
    """
    Return the prompt of π0.5.

    :param instruction: what the robot shall do, in words
    :param state: ``(action_dim,)`` normalised
    :param width: the state is padded with zeros to this width first, for checkpoints that were
        trained so; smaller ones leave it as it is
    Source: openpi and LeRobot, π0.5 prompt.
    """
    padded = np.pad(state, (0, max(0, width - len(state))))
    numbers = ' '.join(str(index) for index in digitise_state(padded))
    return f'Task: {cleaned(instruction)}, State: {numbers};\nAction: '


def longest_state_prompt_bytes(action_dim: int, width: int = 0) -> int:
    """Return the bytes of the longest prompt with an empty instruction."""
    return len(state_prompt('', np.ones(action_dim, np.float32), width).encode())
