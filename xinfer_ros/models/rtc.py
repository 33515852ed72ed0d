# SPDX-License-Identifier: Apache-2.0
"""Real-time chunking: how strongly a new chunk is tied to the leftover of the running one."""

from dataclasses import dataclass, replace
from enum import Enum

from xinfer_ros.core.guidance import Schedule
from xinfer_ros.errors import ConfigError


class RtcMode(Enum):
    """How a new chunk is tied to the leftover."""

    GUIDED = 'guided'
    HARD_PREFIX = 'hard_prefix'
    NONE = 'none'


class Jacobian(Enum):
    """What the guidance takes for the derivative of the denoiser."""

    IDENTITY = 'identity'
    VJP = 'vjp'


@dataclass(frozen=True, slots=True, kw_only=True)
class RtcOptions:
    """
    How new chunks are tied to leftovers.

    :param mode: guided for any checkpoint, hard prefix for those trained for it; None: hard prefix
        if the checkpoint says that it was trained so, guided otherwise
    :param jacobian: of the guidance: the identity, which costs nothing, or the true one, which
        triples Action
    :param schedule: how the guidance weights fall behind the commitment
    :param max_gain: upper limit β of the guidance gain
    """

    mode: RtcMode | None = None
    jacobian: Jacobian = Jacobian.IDENTITY
    schedule: Schedule = Schedule.LINEAR
    max_gain: float = 5.0


def resolved_rtc(options: RtcOptions, *, trained_steps: int, name: str) -> RtcOptions:
    """
    Return the options with a mode that the model can run.

    :param trained_steps: longest hard prefix that the checkpoint was trained with, 0 for none
    :param name: of the model, for the error text
    :raises ConfigError: if a hard prefix is asked of a model that was not trained for it
    """
    if options.mode is RtcMode.HARD_PREFIX and trained_steps == 0:
        raise ConfigError(
            f'rtc_mode is hard_prefix, but {name} was not trained with a clean prefix '
            '(rtc_training_max_delay is 0); choose guided, which suits every model, none, or auto'
        )
    if options.mode is not None:
        return options
    mode = RtcMode.HARD_PREFIX if trained_steps > 0 else RtcMode.GUIDED
    return replace(options, mode=mode)
