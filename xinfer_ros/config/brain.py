# SPDX-License-Identifier: Apache-2.0
"""Every setting of the brain node, and of ``xinfer brain gateway``."""

import re
from dataclasses import dataclass

from xinfer_ros.config.bounds import MAX_BUDGET_S
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import setting

_URL = re.compile(r'https?://[^\s/?#@]+(/[^\s?#]*)?')
RPENT_CAMERAS = ('main', 'wrist', 'extra')
CONTROLLERS = ('working_set', 'open', 'static', 'aimd_usage', 'aimd_hits')


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainConfig:
    """Settings of the brain node."""

    # where
    host: str = setting('127.0.0.1', 'address that the gateway listens on')
    port: int = setting(8100, 'port of the gateway, 0: any that is free', low=0, high=65535)
    public_url: str = setting(
        '', 'how agents reach the gateway, as http://brain.local:8100; empty: by host and port'
    )
    upstreams: tuple[str, ...] = setting(
        ('http://127.0.0.1:8000',),
        'LLM servers that speak the OpenAI interface, without /v1; an episode stays with one',
    )
    token_file: str = setting(
        '', 'file with the token that agents must send as their API key; empty: none is asked for'
    )
    upstream_token_file: str = setting(
        '', 'file with the API key of the LLM servers; empty: that of the agent is passed on, '
        'unless it is the token of the gateway',
    )  # fmt: skip

    # who is admitted
    controller: str = setting(
        'working_set', 'what admits episodes; the others are there to compare', choices=CONTROLLERS
    )
    static_episodes: int = setting(
        16, 'controller static: episodes admitted at once', low=1, high=10000
    )
    controller_settings: tuple[str, ...] = setting(
        (),
        'controller working_set: KEY=VALUE each, as `xinfer settings working_set` shows them',
    )
    cache_tokens: int = setting(
        0, 'size of the prefix cache; 0: as the metrics of the LLM server tell', unit='tokens',
        low=0, high=2**40,
    )  # fmt: skip
    block_tokens: int = setting(
        16, 'size of a block of the prefix cache, unless metrics tell', unit='tokens',
        low=1, high=65536,
    )  # fmt: skip
    max_episodes: int = setting(
        1000, 'most episodes kept, waiting ones included', low=1, high=100000
    )
    max_wait_s: float = setting(
        60.0, 'the longest wait for a place, unless the episode says otherwise; then 429',
        unit='s', low=0.0, high=86400.0,
    )  # fmt: skip
    lease_s: float = setting(
        30.0, 'silence after which an episode ends: neither heartbeat nor call', unit='s',
        low=0.2, high=86400.0,
    )  # fmt: skip
    agent_idle_s: float = setting(
        600.0, 'RunEpisode: for how long after the last call or heartbeat of an admitted episode '
        'the reports of its robot renew the lease, since its agent may be dead', unit='s',
        low=1.0, high=86400.0,
    )  # fmt: skip
    implicit_episodes: bool = setting(
        True, 'open an episode for a call of an unknown id; false: such a call is refused'
    )
    idle_lease_s: float = setting(
        120.0, 'silence after which such an episode ends', unit='s', low=0.2, high=86400.0
    )

    # calls
    heartbeat_after_s: float = setting(
        10.0, 'how long the call of a parked episode is held in silence; then signs of life are '
        'sent, after which its status can only be 200', unit='s', low=0.0, high=3600.0,
    )  # fmt: skip
    heartbeat_s: float = setting(10.0, 'time between two of them', unit='s', low=0.05, high=600.0)
    ask_usage: bool = setting(
        True, 'ask for the usage of streams whose agent does not; the agent does not see it'
    )
    max_request_mib: float = setting(
        64.0, 'largest body of a call', unit='MiB', low=0.001, high=1024.0
    )

    # LLM servers
    connect_timeout_s: float = setting(
        5.0, 'to reach an LLM server', unit='s', low=0.05, high=60.0
    )
    progress_timeout_s: float = setting(
        8.0, 'an LLM server with work that gives no token for so long is dead, whatever its '
        '/health says', unit='s', low=0.1, high=600.0,
    )  # fmt: skip
    probe_period_s: float = setting(
        2.0, 'time between two probes of a dead LLM server: a token is asked for', unit='s',
        low=0.05, high=600.0,
    )  # fmt: skip
    metrics_period_s: float = setting(
        1.0, 'time between two looks at /metrics of an LLM server', unit='s', low=0.1, high=60.0
    )

    # RPent's VLA endpoint
    rpent_port: int = setting(
        0, 'port of the VLA endpoint for RPent, on the same address; 0: none', low=0, high=65535
    )
    rpent_calls: int = setting(
        4, 'VLA endpoint: calls at once, each as a robot rpent_N of the fleet', low=1, high=32
    )
    rpent_joint_names: tuple[str, ...] = setting(
        (), 'VLA endpoint: joints of the model, in the order of the states that RPent sends'
    )
    rpent_cameras: tuple[str, ...] = setting(
        ('main=top', 'wrist=left_wrist', 'extra=right_wrist'),
        "VLA endpoint: RPENT=MODEL each: RPent's pictures main, wrist and extra by their camera",
    )
    rpent_budget_s: float = setting(
        1.0, 'VLA endpoint: response budget of a call', unit='s', low=0.005, high=MAX_BUDGET_S
    )
    rpent_spacing_s: float = setting(
        0.03, 'VLA endpoint: spacing of rows that the model was trained with', unit='s',
        low=0.002, high=1.0,
    )  # fmt: skip
    server: str = setting('/fleet', 'VLA endpoint: namespace of the server of VLA models')

    def __post_init__(self) -> None:
        """Refuse settings that do not fit together."""
        if not self.upstreams or len({u.rstrip('/') for u in self.upstreams}) != len(
            self.upstreams
        ):
            raise ConfigError(
                f'upstreams is {list(self.upstreams)}; give at least one, and each once'
            )
        for url in (*self.upstreams, *([self.public_url] if self.public_url else [])):
            if not _URL.fullmatch(url) or url.rstrip('/').endswith('/v1'):
                raise ConfigError(
                    f'{url!r} is no URL of a server; allowed: http://HOST:PORT, without /v1'
                )
        if self.rpent_port and not self.rpent_joint_names:
            raise ConfigError(
                f'rpent_port is {self.rpent_port}; rpent_joint_names must name the joints of the '
                'model'
            )
        self.camera_by_rpent_name()

    def camera_by_rpent_name(self) -> dict[str, str]:
        """
        Return the model's camera for each picture of RPent.

        :raises ConfigError: if an entry is none, or a name stands twice
        """
        pairs = [entry.partition('=')[::2] for entry in self.rpent_cameras]
        cameras = dict(pairs)
        if (
            len(cameras) != len(pairs)
            or len(set(cameras.values())) != len(pairs)
            or not all(cameras.values())
            or not set(cameras) <= set(RPENT_CAMERAS)
        ):
            raise ConfigError(
                f'rpent_cameras is {list(self.rpent_cameras)}; allowed: RPENT=MODEL, each once, '
                f'with RPENT one of {", ".join(RPENT_CAMERAS)}'
            )
        return cameras
