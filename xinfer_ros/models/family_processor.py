# SPDX-License-Identifier: Apache-2.0
"""Prompts of SmolVLA and Wall-OSS, and the state that goes beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.normalise import Statistics
from xinfer_ros.models.processor import Rows, instruction_text
from xinfer_ros.models.tokenizer import Tokenizer

_PICTURE, _STATE = '<|image_pad|>', '<|propri|>'


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateBeside:
    """
    What both families do alike.

    :param statistics: of the state
    :param action_space: how the model sees actions
    :param tokenizer: makes ids of the text; it must add nothing of its own
    :param prompt_tokens: room for a prompt; a longer one is refused, never cut
    :param model_name: for error texts
    """

    statistics: Statistics
    action_space: ActionSpace
    tokenizer: Tokenizer
    prompt_tokens: int
    model_name: str

    @property
    def action_dim(self) -> int:
        """Return the number of joints."""
        return self.action_space.dim

    def state(self, slots: SlotArrays, slot: int) -> Rows:
        """Return a request's state in model space."""
        return self.statistics.normalise(slots.state[slot])

    def leftover(self, slots: SlotArrays, slot: int) -> Rows:
        """Return the leftover in model space."""
        return self.action_space.to_model(slots.leftover[slot], slots.state[slot])

    def actions(self, chunk: Rows, slots: SlotArrays, slot: int) -> Rows:
        """Return a chunk in robot units."""
        return self.action_space.to_robot(chunk, slots.state[slot])

    def _fitting(self, ids: list[int], slots: SlotArrays, slot: int) -> list[int]:
        if len(ids) > self.prompt_tokens:
            raise Rejected(
                Reason.REJECTED_INSTRUCTION,
                f'the prompt needs {len(ids)} tokens, {self.model_name} has room for '
                f'{self.prompt_tokens}; shorten the instruction of '
                f'{int(slots.instruction_bytes[slot])} bytes',
            )
        return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlaProcessor(_StateBeside):
    """The processor of SmolVLA: the prompt is the instruction and a line end."""

    def prompt(self, slots: SlotArrays, slot: int) -> list[int]:
        """Return the token ids of a request's prompt."""
        text = instruction_text(slots, slot)
        line = text if text.endswith('\n') else f'{text}\n'
        return self._fitting(self.tokenizer.encode(line), slots, slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class WallProcessor(_StateBeside):
    """
    The processor of Wall-OSS: the prompt has place holders for pictures and state.

    :param views: what the prompt calls each camera, in the contract's order
    :param view_tokens: tokens of each camera's picture
    """

    views: tuple[str, ...]
    view_tokens: tuple[int, ...]

    def prompt(self, slots: SlotArrays, slot: int) -> list[int]:
        """Return the token ids of a request's prompt; a missing camera is not mentioned."""
        shown = [
            (view, count)
            for view, count, there in zip(
                self.views, self.view_tokens, slots.camera_present[slot], strict=True
            )
            if there
        ]
        text = wall_prompt(instruction_text(slots, slot), shown)
        return self._fitting(self.tokenizer.encode(text), slots, slot)


def wall_prompt(instruction: str, views: Sequence[tuple[str, int]]) -> str:
    """
    Return the prompt of Wall-OSS up to where the rows of the chunk begin.

    :param views: what is shown, and the tokens of its picture
    Source: published wall-x code and LeRobot, text of a request for actions.
    """
    pictures = ''.join(
        f' {view}: <|vision_start|>{_PICTURE * count}<|vision_end|>' for view, count in views
    )
    return (
        '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n'
        f'<|im_start|>user\nObservation:{pictures}\nInstruction: {instruction}'
        f'\nPredict the next action in robot action.\nProprioception: {_STATE}\n<|im_end|>\n'
        '<|im_start|>assistant\n'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTokenizer:
    """
    A tokenizer that knows some words whole.

    :param rest: for the text between them; what it puts first is cut off
    :param words: ids by word
    """

    rest: Tokenizer
    words: Mapping[str, int]

    @property
    def vocabulary(self) -> int:
        """Return the number of ids; all are below."""
        return max(self.rest.vocabulary, max(self.words.values(), default=-1) + 1)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, without a begin-of-sequence."""
        begin, ids, start = len(self.rest.encode('')), [], 0
        while start < len(text):
            places = {text.find(word, start): word for word in self.words}
            places.pop(-1, None)
            end = min(places, default=len(text))
            if end > start:
                ids += self.rest.encode(text[start:end])[begin:]
            if places:
                ids.append(self.words[places[end]])
                end += len(places[end])
            start = end
        return ids
