# SPDX-License-Identifier: Apache-2.0
"""Every setting of the executor node."""

import re
from dataclasses import dataclass

from xinfer_ros.config.bounds import MAX_BUDGET_S, RCLPY_EXECUTOR
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import setting

_TOPIC = re.compile(r'(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')
_NUMBER = r'-?\d+(\.\d*)?([eE]-?\d+)?'
_JOINT = r'[^=:\s]+'
_VALUE = re.compile(rf'{_JOINT}={_NUMBER}')
_RANGE = re.compile(rf'{_JOINT}={_NUMBER}:{_NUMBER}')
_UNIQUE = ('camera_names', 'camera_topics', 'joint_names', 'model_joint_names', 'command_topics')


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConfig:
    """Settings of the executor node; joints are named by patterns such as ``left_*``."""

    # who and where
    robot_id: str = setting('', 'id in the fleet; empty: the namespace of the node')
    server: str = setting('/fleet', 'namespace of the server')
    autostart: bool = setting(True, 'configure and activate without being told')
    rclpy_executor: str = setting('events', RCLPY_EXECUTOR, choices=('single', 'events'))
    real_time: bool = setting(
        True, 'ask the system for real-time priority, if the robot has a process of its own'
    )

    # joints, sensors and task
    joint_names: tuple[str, ...] = setting(
        (), 'joints in command order; empty: those of the first joint state'
    )
    model_joint_names: tuple[str, ...] = setting(
        (), 'what the model calls joint_names, in the same order; empty: the same names'
    )
    discrete_joints: tuple[str, ...] = setting(
        ('*gripper*', '*finger*'), 'joints that switch: never blended, watched for switches'
    )
    camera_names: tuple[str, ...] = setting(
        ('top', 'left_wrist', 'right_wrist'), 'cameras by the names that the model uses'
    )
    camera_topics: tuple[str, ...] = setting(
        (), 'topic of each camera; empty: <name>/image_raw/compressed or <name>/image_raw'
    )
    camera_transport: str = setting(
        'compressed', 'CompressedImage or Image on camera topics', choices=('compressed', 'raw')
    )
    joint_state_topic: str = setting('joint_states', 'sensor_msgs/JointState of the robot')
    sensor_timeout_s: float = setting(
        1.0, 'age at which a picture or joint state is too old to ask with', unit='s',
        low=0.05, high=60.0,
    )  # fmt: skip
    task_topic: str = setting('task', 'std_msgs/String with the instruction, latched')
    instruction: str = setting('', 'instruction until the task topic says otherwise')

    # commands
    command_topics: tuple[str, ...] = setting(
        ('joint_trajectory',), 'topics on which commands are published, one a controller'
    )
    command_joints: tuple[str, ...] = setting(
        (), 'joints of each command topic, separated by blanks; empty: all, on a single topic'
    )
    command_types: tuple[str, ...] = setting(
        ('joint_trajectory',), 'message of each command topic, or one for all: joint_trajectory '
        '(controller of that name), float64_multi_array (forward command controller), joint_state',
    )  # fmt: skip
    command_interface: str = setting('position', 'what rows are', choices=('position', 'velocity'))
    hold: str = setting(
        'auto', 'what is commanded while there is no row, and at the end; auto: last_position, or '
        'zero_velocity for velocities',
        choices=('auto', 'last_position', 'zero_velocity', 'safe_pose'),
    )  # fmt: skip
    safe_pose: tuple[str, ...] = setting(
        (), 'where hold: safe_pose goes, JOINT=VALUE each; a discrete joint without a value stays'
    )
    safe_pose_speed: float = setting(
        0.25, 'fastest joint on the way to the safe pose', unit='rad/s', low=0.001, high=10.0
    )

    brain_wait: str = setting(
        'keep', 'while its LLM brain waits: keep its task, or hold', choices=('keep', 'hold')
    )

    # limits: a chunk that breaks one is refused whole
    urdf_file: str = setting('', 'URDF with position and velocity limits of the joints')
    robot_description_topic: str = setting(
        '', 'std_msgs/String with the URDF, latched; waited for before the robot moves'
    )
    position_limits: tuple[str, ...] = setting(
        (), 'JOINT=LOWER:UPPER each, stronger than the URDF'
    )
    velocity_limits: tuple[str, ...] = setting(
        (), 'JOINT=SPEED each [1/s], between rows; stronger than the URDF'
    )
    step_limits: tuple[str, ...] = setting(
        (), 'JOINT=STEP each: largest change from one row to the next, the seam included'
    )

    # chunks
    keyframe_spacing_s: float = setting(
        0.03, 'spacing of rows; one command each', unit='s', low=0.002, high=1.0
    )
    execution_mode: str = setting(
        'rtc', 'how chunks follow each other: real-time chunking; replacement at the handoff; '
        'asking when empty; temporal ensembling', choices=('rtc', 'async', 'sync', 'ensemble'),
    )  # fmt: skip
    ensemble_decay: float = setting(
        0.01, 'ensemble: weight exp(-decay i) of the i-th oldest chunk', low=0.0, high=10.0
    )
    minimum_period_s: float = setting(
        0.18, 'least time between two requests, TE', unit='s', low=0.01, high=10.0
    )
    horizon_adaptation: bool = setting(
        False, 'let TE follow how much a new chunk disagrees with the one that it replaces'
    )
    shortest_period_s: float = setting(
        0.12, 'TE at least, if it adapts', unit='s', low=0.01, high=10.0
    )
    longest_period_s: float = setting(
        0.36, 'TE at most, if it adapts', unit='s', low=0.01, high=10.0
    )
    commitment_steps: int = setting(
        6, 'rows of the next chunk that are promised, d; where it starts if it is measured',
        unit='steps', low=0, high=1000,
    )  # fmt: skip
    commitment: str = setting(
        'measured', 'd: commitment_steps, or as long as the longest of the last 20 responses',
        choices=('fixed', 'measured'),
    )  # fmt: skip
    commitment_margin_steps: int = setting(
        1, 'rows that a measured d is longer than the responses', unit='steps', low=0, high=100
    )
    min_commitment_steps: int = setting(1, 'least measured d', unit='steps', low=0, high=1000)
    max_commitment_steps: int = setting(
        1000, 'largest d, if it is measured; stronger than the least', unit='steps',
        low=0, high=1000,
    )  # fmt: skip
    refusal_backoff_s: float = setting(
        0.1, 'pause after an answer without rows', unit='s', low=0.01, high=10.0
    )
    chunk_timeout_s: float = setting(
        0.0, 'hold, rows or not, when no chunk came for so long; 0: rows are played to their end',
        unit='s', low=0.0, high=60.0,
    )  # fmt: skip
    overrun_skip_steps: int = setting(
        2, 'rows left out after a late tick, so that time is not stretched; a longer stall is a '
        'pause, and nothing is left out', unit='steps', low=0, high=100,
    )  # fmt: skip

    # budgets: the tightest source wins
    response_budget_s: float = setting(
        0.18, 'how long an answer may take where no budget source has an opinion', unit='s',
        low=0.005, high=MAX_BUDGET_S,
    )  # fmt: skip
    budget_sources: tuple[str, ...] = setting(
        (), 'what makes budgets beside the Budget topic: gripper, contact, motion'
    )
    tight_budget_s: float = setting(
        0.09, 'budget that a source asks for while precision matters', unit='s',
        low=0.005, high=MAX_BUDGET_S,
    )  # fmt: skip
    wide_budget_s: float = setting(
        0.4, 'budget otherwise, if there is any source', unit='s', low=0.005, high=MAX_BUDGET_S
    )
    gripper_before_s: float = setting(
        1.0, 'time before a switch of a discrete joint that is tight', unit='s', low=0.0, high=10.0
    )
    gripper_after_s: float = setting(
        0.5, 'time after a switch that is tight', unit='s', low=0.0, high=10.0
    )
    contact_efforts: tuple[str, ...] = setting((), 'JOINT=EFFORT each: contact begins above it')
    contact_release: float = setting(
        0.7, 'share of that effort below which contact ends', low=0.01, high=1.0
    )
    motion_speed: float = setting(
        1.0, 'planned joint speed that is tight', unit='rad/s', low=0.01, high=100.0
    )
    motion_turn_speed: float = setting(
        0.2, 'speed on both sides of a planned turn that is tight', unit='rad/s',
        low=0.001, high=100.0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse settings that do not fit together."""
        self._check_lists()
        self._check_names()
        self._check_commands()
        self._check_period()
        self._check_budgets()

    def topic_by_camera(self) -> dict[str, str]:
        """Return the topic of each camera."""
        suffix = '/compressed' if self.camera_transport == 'compressed' else ''
        usual = tuple(f'{name}/image_raw{suffix}' for name in self.camera_names)
        return dict(zip(self.camera_names, self.camera_topics or usual, strict=True))

    def _check_period(self) -> None:
        adapted = self.shortest_period_s <= self.minimum_period_s <= self.longest_period_s
        if self.horizon_adaptation and not adapted:
            raise ConfigError(
                f'minimum_period_s is {self.minimum_period_s}; with horizon_adaptation it starts '
                f'within shortest_period_s {self.shortest_period_s} and longest_period_s '
                f'{self.longest_period_s}'
            )
        longest_s = self.longest_period_s if self.horizon_adaptation else self.minimum_period_s
        is_sync = self.execution_mode == 'sync'  # no chunk comes while rows are played
        if self.chunk_timeout_s and (is_sync or self.chunk_timeout_s <= longest_s):
            raise ConfigError(
                f'chunk_timeout_s is {self.chunk_timeout_s}; chunks are '
                f'{"a whole chunk" if is_sync else f"{longest_s} s"} apart in mode '
                f'{self.execution_mode}: give {"" if is_sync else "a longer time, or "}0'
            )

    def _check_budgets(self) -> None:
        known = ('gripper', 'contact', 'motion')
        for name in self.budget_sources:
            if name not in known:
                raise ConfigError(f'budget_sources has {name!r}; allowed: {", ".join(known)}')
        if self.budget_sources and self.tight_budget_s > self.wide_budget_s:
            raise ConfigError(
                f'tight_budget_s is {self.tight_budget_s}; at most wide_budget_s, '
                f'{self.wide_budget_s}, is allowed'
            )
        if 'contact' in self.budget_sources and not self.contact_efforts:
            raise ConfigError('budget_sources has contact; give contact_efforts, JOINT=EFFORT')

    def _check_lists(self) -> None:
        for name in _UNIQUE:
            values = getattr(self, name)
            if len(set(values)) != len(values) or not all(values):
                raise ConfigError(f'{name} is {list(values)}; every entry once, none empty')
        for name, form, words in (
            ('position_limits', _RANGE, 'JOINT=LOWER:UPPER'),
            ('velocity_limits', _VALUE, 'JOINT=SPEED'),
            ('step_limits', _VALUE, 'JOINT=STEP'),
            ('safe_pose', _VALUE, 'JOINT=VALUE'),
            ('contact_efforts', _VALUE, 'JOINT=EFFORT'),
        ):
            for entry in getattr(self, name):
                if not form.fullmatch(entry):
                    raise ConfigError(f'{name} has {entry!r}; allowed: {words}, as left_*=0.5')
        pairs = {'camera_topics': 'camera_names', 'model_joint_names': 'joint_names'}
        for one, other in pairs.items():
            count, wanted = len(getattr(self, one)), len(getattr(self, other))
            if count not in (0, wanted):
                raise ConfigError(
                    f'{one} has {count} entries, {other} {wanted}; give one each, or none'
                )

    def _check_names(self) -> None:
        for name in ('joint_state_topic', 'task_topic', 'robot_description_topic'):
            self._check_topic(name, getattr(self, name), optional=name.startswith('robot_'))
        for name in ('camera_topics', 'command_topics'):
            for topic in getattr(self, name):
                self._check_topic(name, topic)
        if not re.fullmatch(r'(/[A-Za-z_][A-Za-z0-9_]*)+', self.server):
            raise ConfigError(f'server is {self.server!r}; allowed: a namespace such as /fleet')
        if not re.fullmatch(r'([A-Za-z][A-Za-z0-9_]*)?', self.robot_id):
            raise ConfigError(
                f'robot_id is {self.robot_id!r}; allowed: a letter, then letters, digits or _'
            )

    def _check_commands(self) -> None:
        topics = self.command_topics
        kinds = ('joint_trajectory', 'float64_multi_array', 'joint_state')
        if not topics:
            raise ConfigError('command_topics is empty; give at least one topic')
        for kind in self.command_types:
            if kind not in kinds:
                raise ConfigError(f'command_types has {kind!r}; allowed: {", ".join(kinds)}')
        if len(self.command_types) not in (1, len(topics)):
            raise ConfigError(
                f'command_types has {len(self.command_types)} entries, command_topics '
                f'{len(topics)}; give one for all, or one each'
            )
        if len(self.command_joints) not in ((0, 1) if len(topics) == 1 else (len(topics),)):
            raise ConfigError(
                f'command_joints has {len(self.command_joints)} entries, command_topics '
                f'{len(topics)}; give one each, or none to a single topic'
            )
        velocity = self.command_interface == 'velocity'
        if self.hold != 'auto' and velocity != (self.hold == 'zero_velocity'):
            raise ConfigError(
                f'hold is {self.hold} with command_interface {self.command_interface}; a velocity '
                'must not be held: zero_velocity goes with velocity, the others with position'
            )
        if (self.hold == 'safe_pose') != bool(self.safe_pose):
            raise ConfigError(
                f'hold is {self.hold}, safe_pose {list(self.safe_pose)}; hold: safe_pose needs '
                'a value for every joint, and nothing else does'
            )

    @staticmethod
    def _check_topic(name: str, topic: str, *, optional: bool = False) -> None:
        if not re.fullmatch(_TOPIC, topic) and (topic or not optional):
            raise ConfigError(f'{name} is {topic!r}; allowed: a topic name such as camera/image')
