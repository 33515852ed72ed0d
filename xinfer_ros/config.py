# SPDX-License-Identifier: Apache-2.0
"""Every setting of every node: default, bounds, unit, meaning. The only place for a default."""

import re
from dataclasses import dataclass

from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import setting

MAX_BUDGET_S = 60.0
_TOPIC = re.compile(r'(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')


# models that need no files; models.registry makes them
MODEL_NAMES = (
    'tiny', 'echo', 'table', 'tiny_smolvla', 'tiny_wall', 'random_smolvla', 'random_wall_oss_05',
    'random_vla_2b',
)  # fmt: skip
_EXECUTOR_DOC = 'rclpy executor: events costs a third a message, single is the proven one'


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
        choices=('foresight', 'foresight_shed', 'xinfer', 'slack_gate', 'edf', 'fifo'),
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
    rclpy_executor: str = setting('single', _EXECUTOR_DOC, choices=('single', 'events'))
    autostart: bool = setting(True, 'configure and activate without being told')


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConfig:
    """Settings of the executor node."""

    robot_id: str = setting('', 'id in the fleet; empty: the namespace of the node')
    server: str = setting('/fleet', 'namespace of the server')
    joint_names: tuple[str, ...] = setting(
        (), 'joints in command order; empty: those of the first joint state'
    )
    camera_names: tuple[str, ...] = setting(
        ('top', 'left_wrist', 'right_wrist'), 'cameras by the names that the model uses'
    )
    camera_topics: tuple[str, ...] = setting(
        (), 'topic of each camera; empty: <name>/image_raw/compressed or <name>/image_raw'
    )
    camera_transport: str = setting(
        'compressed',
        'CompressedImage or Image on the camera topics',
        choices=('compressed', 'raw'),
    )
    joint_state_topic: str = setting('joint_states', 'sensor_msgs/JointState of the robot')
    task_topic: str = setting('task', 'std_msgs/String with the instruction, latched')
    instruction: str = setting('', 'instruction until the task topic says otherwise')
    command_topic: str = setting('joint_trajectory', 'topic on which commands are published')
    command_type: str = setting(
        'joint_trajectory', 'trajectory_msgs/JointTrajectory or std_msgs/Float64MultiArray',
        choices=('joint_trajectory', 'float64_multi_array'),
    )  # fmt: skip
    keyframe_spacing_s: float = setting(
        0.03, 'spacing of rows; one command each', unit='s', low=0.002, high=1.0
    )
    minimum_period_s: float = setting(
        0.18, 'least time between two requests, TE', unit='s', low=0.01, high=10.0
    )
    commitment_steps: int = setting(
        6, 'rows of the next chunk that are promised, d; where it starts if it is measured',
        unit='steps', low=0, high=1000,
    )  # fmt: skip
    commitment: str = setting(
        'fixed', 'how d is chosen: commitment_steps, or from the longest of the last 20 responses',
        choices=('fixed', 'measured'),
    )  # fmt: skip
    commitment_margin_steps: int = setting(
        1, 'rows that a measured d is longer than the responses', unit='steps', low=0, high=100
    )
    response_budget_s: float = setting(
        0.18, 'how long an answer may take', unit='s', low=0.005, high=MAX_BUDGET_S
    )
    refusal_backoff_s: float = setting(
        0.1, 'pause after an answer without rows', unit='s', low=0.01, high=10.0
    )
    sensor_timeout_s: float = setting(
        1.0, 'age at which a picture or joint state is too old to ask with', unit='s',
        low=0.05, high=60.0,
    )  # fmt: skip
    rclpy_executor: str = setting('single', _EXECUTOR_DOC, choices=('single', 'events'))

    def __post_init__(self) -> None:
        """Refuse settings that do not fit together."""
        if self.camera_topics and len(self.camera_topics) != len(self.camera_names):
            raise ConfigError(
                f'camera_topics has {len(self.camera_topics)} entries, camera_names '
                f'{len(self.camera_names)}; give one topic a camera, or none'
            )
        for name in ('camera_names', 'camera_topics', 'joint_names'):
            values = getattr(self, name)
            if len(set(values)) != len(values) or not all(values):
                raise ConfigError(f'{name} is {list(values)}; every entry once, none empty')
        for name in ('joint_state_topic', 'task_topic', 'command_topic', *self.camera_topics):
            topic = getattr(self, name, name)
            if not re.fullmatch(_TOPIC, topic):
                raise ConfigError(
                    f'{name} is {topic!r}; allowed: a topic name such as camera/image'
                )
        if not re.fullmatch(r'(/[A-Za-z_][A-Za-z0-9_]*)+', self.server):
            raise ConfigError(f'server is {self.server!r}; allowed: a namespace such as /fleet')
        if not re.fullmatch(r'([A-Za-z][A-Za-z0-9_]*)?', self.robot_id):
            raise ConfigError(
                f'robot_id is {self.robot_id!r}; allowed: a letter, then letters, digits or _'
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """Settings of the replay node."""

    bag: str = setting('', 'folder of the recorded bag, or its name among the shipped episodes')
    loop: bool = setting(True, 'start over at the end')
    rate: float = setting(1.0, 'speed, 1 as recorded', low=0.05, high=20.0)
    start_offset_s: float = setting(
        0.0, 'where in the bag to begin', unit='s', low=0.0, high=86400.0
    )
