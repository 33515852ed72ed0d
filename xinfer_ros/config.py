# SPDX-License-Identifier: Apache-2.0
"""Every setting of every node: default, bounds, unit, meaning. The only place for a default."""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from xinfer_ros.errors import ConfigError

SettingsT = TypeVar('SettingsT')
MAX_BUDGET_S = 60.0
_TOPIC = re.compile(r'(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')


_EXECUTOR_DOC = 'rclpy executor: events costs a third a message, single is the proven one'


def _setting(
    default: Any,
    doc: str,
    *,
    unit: str = '',
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """Return a dataclass field that knows its meaning, unit and bounds."""
    facts = {'doc': doc, 'unit': unit, 'low': low, 'high': high, 'choices': tuple(choices)}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Settings of the server node."""

    model: str = _setting(
        'tiny', 'model to serve: a name of `xinfer models`, or the folder of a checkpoint'
    )
    model_seed: int = _setting(0, 'seed of random weights (tiny)', low=0, high=2**31 - 1)
    device: str = _setting('auto', 'auto, cpu, cuda or cuda:N; auto: CUDA if there is one')
    model_dtype: str = _setting(
        'auto', 'type of the weights; auto: bfloat16 on CUDA, float32 on a CPU',
        choices=('auto', 'float32', 'bfloat16'),
    )  # fmt: skip
    rtc_mode: str = _setting(
        'auto', 'real-time chunking; auto: hard_prefix if the checkpoint was trained for it',
        choices=('auto', 'guided', 'hard_prefix', 'none'),
    )  # fmt: skip
    rtc_jacobian: str = _setting(
        'identity', 'derivative that the guidance takes; vjp is the true one, Action costs thrice',
        choices=('identity', 'vjp'),
    )  # fmt: skip
    rtc_schedule: str = _setting(
        'linear', 'how the guidance falls behind the commitment',
        choices=('linear', 'exp', 'ones', 'zeros'),
    )  # fmt: skip
    rtc_max_gain: float = _setting(5.0, 'largest guidance weight, beta', low=0.0, high=100.0)
    overlap_preparation: bool = _setting(
        True, 'prepare pictures while the device computes (ablation switch C)'
    )
    stage_concurrency: bool = _setting(
        True, 'as many units of a stage at once as the calibration knows; false: one (switch M)'
    )
    round_barrier: bool = _setting(
        False,
        'serve in common rounds: the next begins when the last has ended (switch R off)',
    )
    stage_overlap: bool = _setting(
        True, 'units of different stages run at once (ablation switch G)'
    )
    scheduling_policy: str = _setting(
        'foresight', 'scheduling policy; the others are there to compare',
        choices=('foresight', 'foresight_shed', 'xinfer', 'slack_gate', 'edf', 'fifo'),
    )  # fmt: skip
    calibration: str = _setting(
        '', 'calibration of the device: a shipped name or a .json file; empty: that of the model'
    )
    calibration_mismatch: str = _setting(
        'refuse', 'what to do if a named calibration is of another model or device',
        choices=('refuse', 'warn'),
    )  # fmt: skip
    record_run: str = _setting(
        '', 'file, NAME.npz, that gets every start and end of a unit, for `xinfer audit`; empty: '
        'none'
    )  # fmt: skip
    max_robots: int = _setting(32, 'most robots served at once', low=1, high=256)
    lease_s: float = _setting(
        5.0, 'silence after which another robot may take an id', unit='s', low=0.5, high=600.0
    )
    reserved_s: float = _setting(
        0.004, 'part of every budget kept for what happens outside the server', unit='s',
        low=0.0, high=1.0,
    )  # fmt: skip
    admission: str = _setting(
        'capacity', 'serve as many robots as the device can serve well; none: every one, late',
        choices=('capacity', 'none'),
    )  # fmt: skip
    admission_share: float = _setting(
        0.95, 'share of what the device can do at most that robots are admitted for',
        low=0.1, high=2.0,
    )  # fmt: skip
    decode_threads: int = _setting(1, 'threads that decode pictures', low=1, high=32)
    torch_threads: int = _setting(1, 'CPU threads of one stage', low=1, high=64)
    spare_engine: bool = _setting(
        True, 'keep a second engine process with everything imported, for a quick restart'
    )
    engine_start_timeout_s: float = _setting(
        60.0, 'time for the engine to load and warm up', unit='s', low=1.0, high=3600.0
    )
    engine_silence_s: float = _setting(
        3.0, 'silence after which an engine is taken for hung', unit='s', low=0.5, high=600.0
    )
    hung_after_s: float = _setting(
        1.5, 'age of a unit at which robots are answered HUNG; longer if stages take long',
        unit='s', low=0.1, high=600.0,
    )  # fmt: skip
    unit_timeout_s: float = _setting(
        10.0, 'age of a unit at which the engine is ended and started anew', unit='s',
        low=0.1, high=600.0,
    )  # fmt: skip
    max_in_stages: int = _setting(
        0, 'requests between the start of ViT and their end, which bounds the memory of the '
        'device; 0: one a robot', low=0, high=256,
    )  # fmt: skip
    rclpy_executor: str = _setting('single', _EXECUTOR_DOC, choices=('single', 'events'))
    autostart: bool = _setting(True, 'configure and activate without being told')


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConfig:
    """Settings of the executor node."""

    robot_id: str = _setting('', 'id in the fleet; empty: the namespace of the node')
    server: str = _setting('/fleet', 'namespace of the server')
    joint_names: tuple[str, ...] = _setting(
        (), 'joints in command order; empty: those of the first joint state'
    )
    camera_names: tuple[str, ...] = _setting(
        ('top', 'left_wrist', 'right_wrist'), 'cameras by the names that the model uses'
    )
    camera_topics: tuple[str, ...] = _setting(
        (), 'topic of each camera; empty: <name>/image_raw/compressed or <name>/image_raw'
    )
    camera_transport: str = _setting(
        'compressed',
        'CompressedImage or Image on the camera topics',
        choices=('compressed', 'raw'),
    )
    joint_state_topic: str = _setting('joint_states', 'sensor_msgs/JointState of the robot')
    task_topic: str = _setting('task', 'std_msgs/String with the instruction, latched')
    instruction: str = _setting('', 'instruction until the task topic says otherwise')
    command_topic: str = _setting('joint_trajectory', 'topic on which commands are published')
    command_type: str = _setting(
        'joint_trajectory', 'trajectory_msgs/JointTrajectory or std_msgs/Float64MultiArray',
        choices=('joint_trajectory', 'float64_multi_array'),
    )  # fmt: skip
    keyframe_spacing_s: float = _setting(
        0.03, 'spacing of rows; one command each', unit='s', low=0.002, high=1.0
    )
    minimum_period_s: float = _setting(
        0.18, 'least time between two requests, TE', unit='s', low=0.01, high=10.0
    )
    commitment_steps: int = _setting(
        6, 'rows of the next chunk that are promised, d; where it starts if it is measured',
        unit='steps', low=0, high=1000,
    )  # fmt: skip
    commitment: str = _setting(
        'fixed', 'how d is chosen: commitment_steps, or from the longest of the last 20 responses',
        choices=('fixed', 'measured'),
    )  # fmt: skip
    commitment_margin_steps: int = _setting(
        1, 'rows that a measured d is longer than the responses', unit='steps', low=0, high=100
    )
    response_budget_s: float = _setting(
        0.18, 'how long an answer may take', unit='s', low=0.005, high=MAX_BUDGET_S
    )
    refusal_backoff_s: float = _setting(
        0.1, 'pause after an answer without rows', unit='s', low=0.01, high=10.0
    )
    sensor_timeout_s: float = _setting(
        1.0, 'age at which a picture or joint state is too old to ask with', unit='s',
        low=0.05, high=60.0,
    )  # fmt: skip
    rclpy_executor: str = _setting('single', _EXECUTOR_DOC, choices=('single', 'events'))

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

    bag: str = _setting('', 'folder of the recorded bag, or its name among the shipped episodes')
    loop: bool = _setting(True, 'start over at the end')
    rate: float = _setting(1.0, 'speed, 1 as recorded', low=0.05, high=20.0)
    start_offset_s: float = _setting(
        0.0, 'where in the bag to begin', unit='s', low=0.0, high=86400.0
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint with the nearest valid name, and all of them if none is near."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean {close[0]}?' if close else f'known: {", ".join(known)}'


def allowed(setting: 'Field[Any]') -> str:
    """Return what a setting accepts, in words."""
    facts, kind = setting.metadata, _kind(setting)
    words = {bool: 'true or false', int: 'a whole number', float: 'a number', str: 'text'}
    text = words.get(kind, 'a list of text')
    if facts['choices']:
        return f'one of {", ".join(facts["choices"])}'
    unit = f' {facts["unit"]}' if facts['unit'] else ''
    if facts['low'] is not None:
        return f'{text} from {facts["low"]:g} to {facts["high"]:g}{unit}'
    return text + unit


def _kind(setting: 'Field[Any]') -> type:
    return type(setting.default)


def _checked(setting: 'Field[Any]', value: object, origin: str) -> object:
    """Return the value in the setting's type, or say what is wrong with it."""
    kind, facts, given = _kind(setting), setting.metadata, value
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if kind is tuple and isinstance(value, list | tuple):
        value = tuple(value)
    good = type(value) is kind
    if good and kind is tuple:
        good = all(isinstance(item, str) for item in value)  # type: ignore[attr-defined]
    if good and isinstance(value, float):
        good = math.isfinite(value)
    if good and facts['low'] is not None:
        good = facts['low'] <= value <= facts['high']  # type: ignore[operator]
    if good and facts['choices']:
        good = value in facts['choices']
    if not good:
        hint = ''
        if facts['choices'] and isinstance(value, str):
            hint = f'; {nearest(value, facts["choices"])}'
        raise ConfigError(
            f'{origin}: {setting.name} is {given!r} ({type(given).__name__}); '
            f'allowed: {allowed(setting)}{hint}'
        )
    return value


def settings_from(
    kind: type[SettingsT], values: Mapping[str, object], origins: Mapping[str, str]
) -> SettingsT:
    """
    Return settings with some values in place of the defaults.

    :param kind: ServerConfig, ExecutorConfig or ReplayConfig
    :param values: value of each setting that is not the default
    :param origins: where each value stands, for error texts
    :raises ConfigError: an unknown key, a wrong type or a value out of range
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    accepted = {}
    for name, value in values.items():
        origin = origins.get(name, 'settings')
        if name not in known:
            raise ConfigError(
                f'{origin}: unknown key {name}, {_node(kind)} has none such; '
                f'{nearest(name, list(known))}'
            )
        accepted[name] = _checked(known[name], value, origin)
    try:
        return kind(**accepted)
    except ConfigError as error:
        places = ', '.join(dict.fromkeys(origins.values())) or 'settings'
        raise ConfigError(f'{places}: {error}') from None


def _node(kind: type[Any]) -> str:
    return f'the {kind.__name__.removesuffix("Config").lower()} node'


def describe(kind: type[Any]) -> list[tuple[str, str, str, str]]:
    """Return (name, default, what is allowed, meaning) of every setting."""
    rows = []
    for setting in fields(kind):
        assert setting.default is not MISSING
        default = list(setting.default) if _kind(setting) is tuple else setting.default
        rows.append((setting.name, str(default), allowed(setting), setting.metadata['doc']))
    return rows
