# SPDX-License-Identifier: Apache-2.0
"""Sizes of Wall-OSS models, and of the 2 B model that was measured beside it."""

from dataclasses import dataclass, replace

from xinfer_ros.models.gemma import Activation, GemmaConfig
from xinfer_ros.models.qwen_vision import QwenVisionConfig

Size = tuple[int, int]

# Means and deviations of pixels as CLIP has them, which Qwen2.5-VL kept.
_PIXEL_MEAN = (0.48145466, 0.4578275, 0.40821073)
_PIXEL_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True, slots=True, kw_only=True)
class WallConfig:
    """
    Every size of a Wall-OSS model.

    :param vision: the vision tower
    :param language: the language model
    :param expert: the action expert; layers, heads, kv heads and head width as in ``language``
    :param vocabulary: number of token ids
    :param pictures: height and width of each camera's picture [pixels]
    :param horizon: rows of a chunk, ``H``
    :param action_width: width of an action row in model space, at least the robot's joints
    :param state_width: width of the state in model space
    :param state_hidden: width of the state's token, at most that of the language model
    :param image_token: id of the place holder of a picture token
    :param state_token: id of the place holder of the state
    :param sections: pairs of a head that turn by time, row and column
    :param rope_base: of the rotary frequencies
    :param causal_rows: rows of the chunk see earlier rows only, instead of all
    :param masked_inputs: actions and state are followed by a mask of the joints
    :param time_scale: flow time of finished actions
    :param padding_target: where padded columns go at a fixed velocity; None: as predicted
    :param joints: columns that a robot has, the rest is padding; None for all
    :param num_steps: Euler steps, ``K``
    :param pixel_mean: of red, green and blue, of 1
    :param pixel_deviation: of red, green and blue, of 1
    :raises ValueError: if sizes do not fit together
    """

    vision: QwenVisionConfig
    language: GemmaConfig
    expert: GemmaConfig
    vocabulary: int
    pictures: tuple[Size, ...]
    horizon: int
    action_width: int
    state_width: int
    state_hidden: int
    image_token: int
    state_token: int
    sections: tuple[int, int, int] = (16, 24, 24)
    rope_base: float = 1e6
    causal_rows: bool = True
    masked_inputs: bool = True
    time_scale: float = 0.999
    padding_target: float | None = None
    joints: int | None = None
    num_steps: int = 10
    pixel_mean: tuple[float, float, float] = _PIXEL_MEAN
    pixel_deviation: tuple[float, float, float] = _PIXEL_DEVIATION

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        for name in ('layers', 'heads', 'kv_heads', 'head_dim'):
            ours, theirs = getattr(self.expert, name), getattr(self.language, name)
            if ours != theirs:
                raise ValueError(
                    f'the expert has {name} = {ours} and the language model {theirs}; '
                    'they share a cache, so both must be equal'
                )
        if 2 * sum(self.sections) != self.language.head_dim:
            raise ValueError(
                f'sections {self.sections} must add up to half of the head width of '
                f'{self.language.head_dim}'
            )
        if self.state_hidden > self.language.hidden:
            raise ValueError(
                f"the state's token has a width of {self.state_hidden}, the language model of "
                f'{self.language.hidden}'
            )
        self.picture_tokens  # noqa: B018  a picture that patches do not tile is refused here

    @property
    def picture_tokens(self) -> int:
        """Return the tokens of all cameras together."""
        grids = [self.vision.grid(*size) for size in self.pictures]
        return sum(rows * columns for rows, columns in grids)


def qwen_decoder(
    *, hidden: int, layers: int, mlp: int, heads: int, kv_heads: int, head_dim: int
) -> GemmaConfig:
    """Return the sizes of a decoder with the norms, activation and biases of Qwen2.5."""
    return GemmaConfig(
        hidden=hidden,
        layers=layers,
        mlp=mlp,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        activation=Activation.SILU,
        norm_offset=0.0,
        epsilon=1e-6,
        qkv_bias=True,
    )


def published_wall_oss_05(pictures: tuple[Size, ...] | None = None) -> WallConfig:
    """
    Return the sizes of Wall-OSS-0.5: Qwen2.5-VL-3B and an expert of half its width.

    :param pictures: of the cameras; None for three views that give the paper's 217 tokens
    """
    heads = {'layers': 36, 'heads': 16, 'kv_heads': 2, 'head_dim': 128}
    return WallConfig(
        vision=QwenVisionConfig(hidden=1280, layers=32, mlp=3420, heads=16),
        language=qwen_decoder(hidden=2048, mlp=11008, **heads),
        expert=qwen_decoder(hidden=1024, mlp=2048, **heads),
        vocabulary=155765,
        pictures=pictures if pictures is not None else paper_pictures(),
        horizon=10,
        action_width=26,
        state_width=26,
        state_hidden=2048,
        image_token=151655,
        state_token=151665,
    )


def paper_pictures() -> tuple[Size, ...]:
    """
    Return three pictures whose merged patches are the paper's 217 tokens.

    The paper names 196x308 pixels, 868 patches and 217 tokens for three views. Three such
    pictures are 924 patches, so two of them must be smaller; 196x280 is the only size with the
    same rows and patches of 28 pixels that gives both numbers with two equal views. Which sizes
    its authors used is not published.
    """
    return (196, 308), (196, 280), (196, 280)


def paper_vla_2b() -> WallConfig:
    """
    Return a model with the input of the paper's VLA-2B, 217 visual and 229 prompt tokens.

    Only the numbers of tokens and the name are published. The sizes are those of a Qwen2-VL-2B
    decoder, 1.5 G parameters in 28 layers, beside the same tower and an expert in proportion: a
    stand-in for load tests.
    """
    heads = {'layers': 28, 'heads': 12, 'kv_heads': 2, 'head_dim': 128}
    return replace(
        published_wall_oss_05(),
        language=qwen_decoder(hidden=1536, mlp=8960, **heads),
        expert=qwen_decoder(hidden=768, mlp=2048, **heads),
        vocabulary=151936,
        state_hidden=1536,
    )
