# SPDX-License-Identifier: Apache-2.0
"""How a model is to be loaded and used, in plain values that cross a process border."""

from dataclasses import dataclass, field

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.guidance import Schedule
from xinfer_ros.models.rtc import Jacobian, RtcMode, RtcOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """
    What ``make_model`` is told beside the name.

    :param seed: of random weights; without effect on models that have none
    :param device: ``auto`` (the first CUDA device if there is one), ``cpu``, ``cuda``, ``cuda:N``
    :param dtype: ``auto`` (bfloat16 on CUDA, float32 on a CPU), ``float32`` or ``bfloat16``
    :param rtc: how new chunks are tied to leftovers
    :param echo_joints: joints of the model echo; none: those of the ALOHA robot
    :param echo_cameras: its cameras; none: those of the ALOHA robot
    """

    seed: int = 0
    device: str = 'auto'
    dtype: str = 'auto'
    rtc: RtcOptions = field(default_factory=RtcOptions)
    echo_joints: tuple[str, ...] = ()
    echo_cameras: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: ServerConfig) -> 'ModelOptions':
        """Return the model's part of the server's settings."""
        mode = None if config.rtc_mode == 'auto' else RtcMode(config.rtc_mode)
        return cls(
            seed=config.model_seed,
            device=config.device,
            dtype=config.model_dtype,
            echo_joints=tuple(config.echo_joints),
            echo_cameras=tuple(config.echo_cameras),
            rtc=RtcOptions(
                mode=mode,
                jacobian=Jacobian(config.rtc_jacobian),
                schedule=Schedule(config.rtc_schedule),
                max_gain=config.rtc_max_gain,
            ),
        )
