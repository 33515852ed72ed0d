# SPDX-License-Identifier: Apache-2.0
"""The three stages of a vision-language-action model."""

from enum import IntEnum


class Stage(IntEnum):
    """
    One stage of the model pipeline, in the order in which a request passes them.

    Context is ViT and Prefill together.
    """

    VIT = 0
    PREFILL = 1
    ACTION = 2

    @property
    def following(self) -> 'Stage | None':
        """Return the stage after this one, None after Action."""
        return _FOLLOWING[self]


_FOLLOWING = (Stage.PREFILL, Stage.ACTION, None)
