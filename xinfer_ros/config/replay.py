# SPDX-License-Identifier: Apache-2.0
"""Every setting of the replay node."""

from dataclasses import dataclass

from xinfer_ros.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """Settings of the replay node."""

    bag: str = setting('', 'folder of the recorded bag, or its name among the shipped episodes')
    loop: bool = setting(True, 'start over at the end')
    rate: float = setting(1.0, 'speed, 1 as recorded', low=0.05, high=20.0)
    start_offset_s: float = setting(
        0.0, 'where in the bag to begin', unit='s', low=0.0, high=86400.0
    )
