# SPDX-License-Identifier: Apache-2.0
"""Every setting of the replay node."""

from dataclasses import dataclass

from xinfer_ros.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """Settings of the replay node."""

    bag: str = setting(
        '', 'episode of any readable format: a path, PATH#NAME for one of several, or the name of '
        'a shipped one',
    )  # fmt: skip
    loop: bool = setting(True, 'start over at the end')
    rate: float = setting(1.0, 'speed, 1 as recorded', low=0.05, high=20.0)
    start_offset_s: float = setting(
        0.0, 'where in the episode to begin, modulo its length', unit='s', low=0.0, high=86400.0
    )
    required_topics: tuple[str, ...] = setting(
        (), 'topics that the episode must have, and that somebody must listen to before it '
        'begins; what is latched on them must have arrived there, which may take some seconds'
    )  # fmt: skip
