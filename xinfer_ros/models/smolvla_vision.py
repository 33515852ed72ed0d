# SPDX-License-Identifier: Apache-2.0
"""The vision tower of SmolVLA: a SigLIP encoder whose tokens are folded before the projector."""

from dataclasses import dataclass

from torch import Tensor, nn

from xinfer_ros.models.siglip import VisionConfig, VisionTower


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVisionConfig:
    """
    Sizes of the vision tower.

    :param tower: the encoder, before its tokens are folded
    :param fold: edge of the square of tokens that becomes one
    :raises ValueError: if the squares do not tile the token grid
    """

    tower: VisionConfig
    fold: int

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        rows, columns = self._grid
        if rows % self.fold or columns % self.fold:
            raise ValueError(
                f'squares of {self.fold} do not tile a grid of {rows}x{columns} tokens'
            )

    @property
    def _grid(self) -> tuple[int, int]:
        return self.tower.height // self.tower.patch, self.tower.width // self.tower.patch

    @property
    def height(self) -> int:
        """Return the rows of a picture [pixels]."""
        return self.tower.height

    @property
    def width(self) -> int:
        """Return the columns of a picture [pixels]."""
        return self.tower.width

    @property
    def num_tokens(self) -> int:
        """Return the number of tokens of one picture that reach the language model."""
        return self.tower.num_tokens // self.fold**2

    @property
    def folded_width(self) -> int:
        """Return the width of a folded token."""
        return self.tower.hidden * self.fold**2


def fold_tokens(tokens: Tensor, rows: int, fold: int) -> Tensor:
    """
    Return squares of tokens as one token each, row by row, upper left first.

    :param tokens: ``(N, rows x columns, hidden)``
    :param rows: of the token grid
    :param fold: edge of a square [tokens]
    :returns: ``(N, rows x columns / fold**2, fold**2 x hidden)``
    Source: published SmolVLM, pixel shuffle.
    """
    n, _, hidden = tokens.shape
    squares = tokens.view(n, rows // fold, fold, -1, fold, hidden)
    return squares.transpose(2, 3).reshape(n, -1, fold**2 * hidden)


class SmolVision(nn.Module):
    """
    Encoder, folding and projector.

    :param config: sizes
    :param hidden: width of the language model
    """

    def __init__(self, config: SmolVisionConfig, hidden: int) -> None:
        super().__init__()
        self.config = config
        self.tower = VisionTower(config.tower)
        self.projector = nn.Linear(config.folded_width, hidden, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """
        Return the tokens of each picture.

        :param images: ``(N, 3, height, width)``, [-1, 1]
        :returns: ``(N, tokens, hidden)``
        """
        rows = self.config.tower.height // self.config.tower.patch
        folded = fold_tokens(self.tower(images), rows, self.config.fold)
        tokens: Tensor = self.projector(folded)
        return tokens
