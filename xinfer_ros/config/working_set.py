# SPDX-License-Identifier: Apache-2.0
"""Every setting of the working-set controller."""

from dataclasses import dataclass

from xinfer_ros.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetConfig:
    """How the default controller of the brain tier measures the cache and fills it."""

    start_share: float = setting(
        0.65, 'capacity believed at the start, as a share of what the server says that it has',
        low=0.05, high=1.0,
    )  # fmt: skip
    start_tokens: float = setting(
        500000.0, 'capacity believed until the server tells one, or hits prove more',
        unit='tokens', low=1.0, high=1e12,
    )  # fmt: skip
    admit_share: float = setting(
        0.87, 'share of the capacity that the contexts may come to when one more is admitted',
        low=0.1, high=1.2,
    )  # fmt: skip
    deviations: float = setting(
        1.2, 'standard deviations of the forecast that are added to it', low=0.0, high=5.0
    )
    park_share: float = setting(
        0.94, 'share of the capacity above which the youngest episode is parked',
        low=0.1, high=1.5,
    )  # fmt: skip
    ahead_turns: int = setting(22, 'how far the forecast looks', unit='turns', low=0, high=100)
    settle_s: float = setting(
        600.0, 'how long after a loss of capacity those come first whose contexts are cached',
        unit='s', low=0.0, high=3600.0,
    )  # fmt: skip
    renew_s: float = setting(
        20.0, 'time between two lost contexts that are computed again meanwhile', unit='s',
        low=0.0, high=600.0,
    )  # fmt: skip
    typical_turns: float = setting(
        24.0, 'length of an episode, until it is learned', unit='turns', low=1.0, high=1000.0
    )
    typical_prompt_tokens: float = setting(
        0.0, 'first prompt assumed until it is learned; 0: by prompt_share', unit='tokens',
        low=0.0, high=1e7,
    )  # fmt: skip
    typical_growth_tokens: float = setting(
        0.0, 'what a turn adds to a context, assumed until it is learned; 0: by growth_share',
        unit='tokens', low=0.0, high=1e6,
    )  # fmt: skip
    prompt_share: float = setting(
        0.0083,
        'first prompt assumed, as a share of what the cache is said to hold',
        low=0.0,
        high=1.0,
    )
    growth_share: float = setting(
        0.0012, 'growth assumed, as a share of what the cache is said to hold', low=0.0, high=1.0
    )
