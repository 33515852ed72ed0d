# SPDX-License-Identifier: Apache-2.0
"""Every setting of the server node."""

from dataclasses import dataclass

from xinfer_ros.config.bounds import MAX_BUDGET_S, RCLPY_EXECUTOR, is_loopback
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import setting

# models that need no files; models.registry makes them
MODEL_NAMES = (
    'tiny', 'echo', 'table', 'tiny_smolvla', 'tiny_wall', 'random_smolvla', 'random_wall_oss_05',
    'random_vla_2b',
)  # fmt: skip

FEWEST_CHARACTERS = 16  # of a token


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Settings of the server node."""

    model: str = setting(
        'tiny',
        'model to serve; `xinfer models` shows them',
        choices=MODEL_NAMES,
        pattern=r'(table|fixed|python):.+|.*/.*|~|\.\.?',
        pattern_words='table:CALIBRATION, fixed:MS, python:MODULE:FACTORY, a folder as ./NAME',
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
    decision_log: str = setting(
        '', 'folder that gets everything the scheduler is told and decides, for `xinfer explain`, '
        '`trace`, `audit` and `replay-decisions`; empty: none'
    )  # fmt: skip
    decision_log_mb: int = setting(
        256, 'size of all decision logs in that folder together; the oldest parts go', unit='MB',
        low=1, high=1_000_000,
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
    websocket_port: int = setting(
        0, "port of the websocket door, which speaks openpi's protocol; 0: closed",
        low=0, high=65535,
    )  # fmt: skip
    websocket_host: str = setting('127.0.0.1', 'address that the websocket door listens on')
    websocket_token: str = setting(
        '', 'what robots give as api_key; needed unless websocket_host is this machine alone'
    )
    websocket_robots: int = setting(
        32, 'most connections of the websocket door at once', low=1, high=256
    )
    websocket_max_mb: float = setting(
        16.0, 'largest observation over a websocket', unit='MB', low=0.1, high=256.0
    )
    websocket_budget_s: float = setting(
        0.5, 'response budget of a websocket robot that names none', unit='s',
        low=0.005, high=MAX_BUDGET_S,
    )  # fmt: skip
    websocket_period_s: float = setting(
        0.18, 'TE of a websocket robot that names none', unit='s', low=0.01, high=10.0
    )
    websocket_spacing_s: float = setting(
        0.03, 'spacing of rows of a websocket robot that names none', unit='s',
        low=0.002, high=1.0,
    )  # fmt: skip
    websocket_prompt: str = setting(
        '', 'instruction of a websocket robot that sends none under prompt'
    )
    websocket_keys: tuple[str, ...] = setting(
        (), 'what stands under a key of an observation, KEY=NAME each: NAME is a camera of the '
        'model, state, or prompt; several keys of state are joined in this order; empty: the '
        'usual keys'
    )  # fmt: skip
    status_window_s: float = setting(
        10.0, 'what rates, shares and percentiles of the fleet status are taken over', unit='s',
        low=1.0, high=300.0,
    )  # fmt: skip
    late_warn_share: float = setting(
        0.05, 'share of late answers from which a robot is WARN', low=0.0, high=1.0
    )
    late_error_share: float = setting(
        0.5, 'share of late answers from which a robot is ERROR', low=0.0, high=1.0
    )
    starved_warn_share: float = setting(
        0.01, 'share of control ticks without an action from which a robot is WARN',
        low=0.0, high=1.0,
    )  # fmt: skip
    starved_error_share: float = setting(
        0.1, 'share of control ticks without an action from which a robot is ERROR',
        low=0.0, high=1.0,
    )  # fmt: skip
    stale_s: float = setting(
        2.0, 'silence after which a robot is ERROR', unit='s', low=0.5, high=600.0
    )
    lost_robot_s: float = setting(
        60.0, 'how long a robot is still shown whose lease is over', unit='s', low=0.0,
        high=86400.0,
    )  # fmt: skip
    network_warn_s: float = setting(
        0.05, 'median time on the network, both ways, from which a robot is WARN', unit='s',
        low=0.0, high=10.0,
    )  # fmt: skip
    http_host: str = setting('127.0.0.1', 'address that live page and metrics are served at')
    http_port: int = setting(
        8320, 'port of live page and metrics; 0: neither is served', low=0, high=65535
    )
    http_token: str = setting(
        '', 'password of the live page; empty: none is asked for on this machine, and there is no '
        'page but only metrics if http_host is reached from others'
    )  # fmt: skip
    http_watchers: int = setting(8, 'live pages that may be open at once', low=1, high=64)
    metrics_per_robot: bool = setting(
        True, 'metrics with a label for each robot, at most max_robots; false: of the fleet alone'
    )
    rclpy_executor: str = setting('events', RCLPY_EXECUTOR, choices=('single', 'events'))
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
        for name in ('http_token', 'websocket_token'):
            characters = len(getattr(self, name))
            if 0 < characters < FEWEST_CHARACTERS:
                raise ConfigError(
                    f'{name} has {characters} characters and could be guessed; allowed are none '
                    f'and at least {FEWEST_CHARACTERS}, as of `openssl rand -hex 16`'
                )
        is_open = self.websocket_port and not is_loopback(self.websocket_host)
        if is_open and not self.websocket_token:
            raise ConfigError(
                f'websocket_host is {self.websocket_host!r}, so other machines can drive robots '
                'through it, and websocket_token is empty; set a token (robots give it as '
                'api_key), or websocket_host to 127.0.0.1'
            )
