# SPDX-License-Identifier: Apache-2.0
"""Between robot units and model space: prompts in, leftovers in, actions out."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.normalise import Statistics
from xinfer_ros.models.tokenizer import Tokenizer, state_prompt, stateless_prompt

Rows = npt.NDArray[np.float32]


class Processor(Protocol):
    """What stands between a robot's units and a model's, one request at a time."""

    @property
    def action_dim(self) -> int:
        """Return the number of joints."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """Return the room for a prompt; a longer one is refused, never cut [tokens]."""
        ...

    def prompt(self, slots: SlotArrays, slot: int) -> list[int]:
        """
        Return the token ids of a request's prompt.

        :raises Rejected: REJECTED_INSTRUCTION if it is not UTF-8 or too long
        """
        ...

    def state(self, slots: SlotArrays, slot: int) -> Rows:
        """
        Return what the model is given of a request's state beside the prompt.

        :returns: ``(n,)`` float32 in model space; empty where the prompt tells the state
        """
        ...

    def leftover(self, slots: SlotArrays, slot: int) -> Rows:
        """Return the leftover in model space, ``(H, action_dim)``; the last row is repeated."""
        ...

    def actions(self, chunk: Rows, slots: SlotArrays, slot: int) -> Rows:
        """
        Return a chunk in robot units, ``(H, action_dim)`` float32.

        :param chunk: ``(H, action_dim)`` model space
        """
        ...


def instruction_text(slots: SlotArrays, slot: int) -> str:
    """
    Return a request's instruction.

    :raises Rejected: REJECTED_INSTRUCTION if it is not UTF-8
    """
    used = int(slots.instruction_bytes[slot])
    try:
        return slots.instruction[slot, :used].tobytes().decode()
    except UnicodeDecodeError as error:
        raise Rejected(
            Reason.REJECTED_INSTRUCTION, f'the instruction is not UTF-8: {error}'
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePrompt:
    """
    A prompt that tells the instruction and, if the model was trained so, the state.

    :param statistics: of the state
    :param tokenizer: makes ids of the text
    :param tokens: room for the prompt; a longer one is refused, never cut
    :param state_width: the state is padded with zeros to this width, 0 for no padding; None for a
        prompt that does not tell the state
    :param vocabulary: ids that the model knows; a tokenizer may have more, None: it has not
    :param model_name: for error texts
    """

    statistics: Statistics
    tokenizer: Tokenizer
    tokens: int
    state_width: int | None = 0
    vocabulary: int | None = None
    model_name: str

    def text(self, instruction: str, state: Rows) -> str:
        """
        Return the text of a prompt.

        :param state: ``(action_dim,)`` robot units
        """
        if self.state_width is None:
            return stateless_prompt(instruction)
        return state_prompt(instruction, self.statistics.normalise(state), self.state_width)

    def ids(self, instruction: str, state: Rows) -> list[int]:
        """
        Return the token ids of a prompt.

        :raises Rejected: REJECTED_INSTRUCTION if there are too many, or one that the model lacks
        """
        ids = self.tokenizer.encode(self.text(instruction, state))
        if self.vocabulary is not None and max(ids) >= self.vocabulary:
            raise Rejected(
                Reason.REJECTED_INSTRUCTION,
                f'the instruction has token {max(ids)}, {self.model_name} knows those below '
                f'{self.vocabulary}; leave out marks such as <image>',
            )
        if len(ids) > self.tokens:
            raise Rejected(
                Reason.REJECTED_INSTRUCTION,
                f'the prompt needs {len(ids)} tokens, {self.model_name} has room for '
                f'{self.tokens}; shorten the instruction of {len(instruction.encode())} bytes',
            )
        return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi05Processor:
    """
    The processor of π0.5.

    :param state_prompt: makes prompts
    :param action_space: how the model sees actions
    """

    state_prompt: StatePrompt
    action_space: ActionSpace

    @property
    def action_dim(self) -> int:
        """Return the number of joints."""
        return self.action_space.dim

    @property
    def prompt_tokens(self) -> int:
        """Return the room for a prompt [tokens]."""
        return self.state_prompt.tokens

    def prompt(self, slots: SlotArrays, slot: int) -> list[int]:
        """Return the token ids of a request's prompt."""
        return self.state_prompt.ids(instruction_text(slots, slot), slots.state[slot])

    def state(self, slots: SlotArrays, slot: int) -> Rows:
        """Return an empty array: the prompt tells the state."""
        return np.zeros(0, np.float32)

    def leftover(self, slots: SlotArrays, slot: int) -> Rows:
        """Return the leftover in model space."""
        return self.action_space.to_model(slots.leftover[slot], slots.state[slot])

    def actions(self, chunk: Rows, slots: SlotArrays, slot: int) -> Rows:
        """Return a chunk in robot units."""
        return self.action_space.to_robot(chunk, slots.state[slot])
