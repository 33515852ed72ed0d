# SPDX-License-Identifier: Apache-2.0
"""Every setting of the server node."""

from dataclasses import dataclass

from xinfer_ros.config.bounds import RCLPY_EXECUTOR
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import setting

# models that need no files; models.registry makes them
MODEL_NAMES = (
    'tiny', 'echo', 'table', 'tiny_smolvla', 'tiny_wall', 'random_smolvla', 'random_wall_oss_05',
    'random_vla_2b',
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Settings of the server node."""

    model: str = setting(
        'tiny',
        'model to serve; `xinfer models` shows them',
        choices=MODEL_NAMES,
        pattern=r'(table|python):.+|.*/.*|~|\.\.?',
        pattern_words='table:CALIBRATION, python:MODULE:FACTORY, a folder as ./NAME',
    )
    echo_joints: tuple[str, ...] = setting(
        (), 'model echo: joints of the robots that it serves; empty: those of the ALOHA robot'
    )
    echo_cameras: tuple[str, ...] = setting(
        (), 'model echo: their cameras; empty: those of the ALOHA robot'
    )
    model_seed: int = setting(0, 'seed of random weights (tiny)', low=0, high=2**31 - 1)
    device: str = setting('auto', 'auto, cpu, cuda or cuda:N; auto: CUDA if there is one')
    model_dtype: str = setting(
        'auto', 'type of the weights; auto: bfloat16 on CUDA, float32 on a CPU',
        choices=('auto', 'float32', 'bfloat16'),
    )  # fmt: skip
    rtc_mode: str = setting(
        'auto', 'real-time chunking; auto: hard_prefix if the checkpoint was trained for it',
        choices=('auto', 'guided', 'hard_prefix', 'none'),
    )  # fmt: skip
    rtc_jacobian: str = setting(
        'identity', 'derivative that the guidance takes; vjp is the true one, Action costs thrice',
        choices=('identity', 'vjp'),
    )  # fmt: skip
    rtc_schedule: str = setting(
        'linear', 'how the guidance falls behind the commitment',
        choices=('linear', 'exp', 'ones', 'zeros'),
    )  # fmt: skip
    rtc_max_gain: float = setting(5.0, 'largest guidance weight, beta', low=0.0, high=100.0)
    overlap_preparation: bool = setting(
        True, 'prepare pictures while the device computes (ablation switch C)'
    )
    stage_concurrency: bool = setting(
        True, 'as many units of a stage at once as the calibration knows; false: one (switch M)'
    )
    round_barrier: bool = setting(
        False,
        'serve in common rounds: the next begins when the last has ended (switch R off)',
    )
    stage_overlap: bool = setting(
        True, 'units of different stages run at once (ablation switch G)'
    )
    scheduling_policy: str = setting(
        'foresight', 'scheduling policy; the others are there to compare',
        choices=(
            'foresight', 'foresight_shed', 'xinfer', 'slack_gate', 'edf', 'fifo', 'serial',
            'dynamic_batch', 'robion', 'round_robin', 'armory_edf', 'lookahead',
        ),
    )  # fmt: skip
    policy_settings: tuple[str, ...] = setting(
        (), 'settings of the scheduling policy, KEY=VALUE each; `xinfer settings POLICY` has them'
    )
    calibration: str = setting(
        '', 'calibration of the device: a shipped name or a .json file; empty: that of the model'
    )
    calibration_mismatch: str = setting(
        'refuse', 'what to do if a named calibration is of another model or device',
        choices=('refuse', 'warn'),
    )  # fmt: skip
    record_run: str = setting(
        '', 'file, NAME.npz, that gets every start and end of a unit, for `xinfer audit`; empty: '
        'none'
    )  # fmt: skip
    max_robots: int = setting(32, 'most robots served at once', low=1, high=256)
    lease_s: float = setting(
        5.0, 'silence after which another robot may take an id', unit='s', low=0.5, high=600.0
    )
    reserved_s: float = setting(
        0.004, 'part of every budget kept for what happens outside the server', unit='s',
        low=0.0, high=1.0,
    )  # fmt: skip
    admission: str = setting(
        'capacity', 'serve as many robots as the device can serve well; none: every one, late',
        choices=('capacity', 'none'),
    )  # fmt: skip
    admission_share: float = setting(
        0.95, 'share of what the device can do at most that robots are admitted for',
        low=0.1, high=2.0,
    )  # fmt: skip
    decode_threads: int = setting(1, 'threads that decode pictures', low=1, high=32)
    torch_threads: int = setting(1, 'CPU threads of one stage', low=1, high=64)
    spare_engine: bool = setting(
        True, 'keep a second engine process with everything imported, for a quick restart'
    )
    engine_start_timeout_s: float = setting(
        60.0, 'time for the engine to load and warm up', unit='s', low=1.0, high=3600.0
    )
    engine_silence_s: float = setting(
        3.0, 'silence after which an engine is taken for hung', unit='s', low=0.5, high=600.0
    )
    hung_after_s: float = setting(
        1.5, 'age of a unit at which robots are answered HUNG; longer if stages take long',
        unit='s', low=0.1, high=600.0,
    )  # fmt: skip
    unit_timeout_s: float = setting(
        10.0, 'age of a unit at which the engine is ended and started anew', unit='s',
        low=0.1, high=600.0,
    )  # fmt: skip
    max_in_stages: int = setting(
        0, 'requests between the start of ViT and their end, which bounds the memory of the '
        'device; 0: one a robot', low=0, high=256,
    )  # fmt: skip
    rclpy_executor: str = setting('single', RCLPY_EXECUTOR, choices=('single', 'events'))
    autostart: bool = setting(True, 'configure and activate without being told')

    def __post_init__(self) -> None:
        """Refuse settings that do not fit together."""
        for name in ('echo_joints', 'echo_cameras'):
            values = getattr(self, name)
            if values and self.model != 'echo':
                raise ConfigError(
                    f'{name} is {list(values)}, but the model is {self.model}, which knows its '
                    'own; leave it out, or serve echo'
                )
            if len(set(values)) != len(values) or not all(values):
                raise ConfigError(f'{name} is {list(values)}; every entry once, none empty')
