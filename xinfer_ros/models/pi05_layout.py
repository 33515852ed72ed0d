# SPDX-License-Identifier: Apache-2.0
"""What a folder says of a π0.5 model beside its weights, whoever wrote it."""

from dataclasses import dataclass

from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.folder import owner_setting
from xinfer_ros.models.normalise import Statistics

PROMPT_TOKENS = 200
NUM_STEPS = 10
STATE_WIDTH = 32
UNPADDED, PADDED, ABSENT = 'unpadded', 'padded', 'absent'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi05Settings:
    """What the owner of a folder may add in ``xinfer.json``; it goes before what files say."""

    vision_heads: int | None = owner_setting(int, 'heads of the vision tower')
    kv_heads: int | None = owner_setting(int, 'key heads of the decoders, 1 if not said')
    state_prompt: str | None = owner_setting(
        str, 'how the state is written into the prompt',
        choices=(UNPADDED, PADDED, ABSENT),
    )  # fmt: skip
    joint_names: tuple[str, ...] | None = owner_setting(list, 'the joints, in the order of rows')
    cameras: tuple[str | None, ...] | None = owner_setting(
        list, "the robot's names of the model's pictures, null for one that it lacks"
    )
    tokenizer: str | None = owner_setting(
        str, 'bytes: one token a byte, for random weights', choices=('bytes',)
    )
    prompt_tokens: int | None = owner_setting(int, 'room for a prompt [tokens]')
    num_steps: int | None = owner_setting(int, 'Euler steps, K')
    relative_actions: bool | None = owner_setting(bool, 'actions are relative to the state')
    absolute_joints: tuple[str, ...] | None = owner_setting(
        list, 'joints, or parts of their names, that are never relative'
    )
    norm_stats: str | None = owner_setting(str, 'which folder of assets/ to take (openpi)')


def told_width(told: str, width: int) -> int | None:
    """
    Return to which width a state is padded in the prompt.

    :param told: ``state_prompt`` of the owner
    :param width: of the model's state
    """
    return {UNPADDED: 0, PADDED: width, ABSENT: None}[told]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi05Layout:
    """
    What the files of a layout say.

    :param name: who wrote the folder
    :param horizon: rows of a chunk, ``H``
    :param num_steps: Euler steps, ``K``
    :param height: rows of a picture [pixels]
    :param width: columns of a picture [pixels]
    :param cameras: the robot's names of the pictures, in the model's order
    :param joint_names: None if no file tells
    :param state: statistics of the state
    :param action_space: how the model sees actions
    :param state_width: the state is padded with zeros to this width in the prompt, 0: it is not,
        None: it is not in the prompt
    :param prompt_tokens: room for a prompt
    :param trained_steps: longest hard prefix of the training, 0 for none
    :param tokenizer_places: folders that may hold the tokenizer, relative
    :param warnings: what had to be assumed
    """

    name: str
    horizon: int
    num_steps: int
    height: int
    width: int
    cameras: tuple[str, ...]
    joint_names: tuple[str, ...] | None
    state: Statistics
    action_space: ActionSpace
    state_width: int | None
    prompt_tokens: int
    trained_steps: int = 0
    tokenizer_places: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
