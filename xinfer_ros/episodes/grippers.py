# SPDX-License-Identifier: Apache-2.0
"""When the grippers of an episode switch, and how long they hold something."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.switches import find_switches, switch_amplitudes
from xinfer_ros.episodes.episode import Episode, Series
from xinfer_ros.errors import ConfigError

CONTACT_SHARE = 0.5  # of a gripper's largest effort, where no other threshold is given
RELEASE_SHARE = 0.7  # of the threshold, below which contact ends


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperSwitch:
    """
    One switch of a gripper.

    :param joint: its name
    :param time_ns: after the start of the episode [ns]
    :param opens: whether its value grows, which most grippers call open
    """

    joint: str
    time_ns: int
    opens: bool


def gripper_switches(episode: Episode) -> tuple[GripperSwitch, ...]:
    """Return when grippers switch: by what they were told, or by what they measured if nothing."""
    columns = [episode.joints.index(joint) for joint in episode.gripper_joints]
    found = []
    for column in columns:
        series = _told(episode, column)
        if series is not None:
            values = series.values[:, column : column + 1]
            times_ns = series.times_ns[~np.isnan(values[:, 0])]
            values = values[~np.isnan(values[:, 0])]
            found += [
                GripperSwitch(
                    joint=episode.joints[column],
                    time_ns=int(times_ns[switch.row]),
                    opens=switch.rises,
                )
                for switch in find_switches(values, switch_amplitudes(values))
            ]
    return tuple(sorted(found, key=lambda switch: (switch.time_ns, switch.joint)))


def contact_share(episode: Episode, thresholds: Mapping[str, float]) -> float | None:
    """
    Return the share of the time in which a gripper pushes against something, 0 to 1.

    :param episode: the episode
    :param thresholds: effort at which contact begins, by joint; without any, half of the largest
        effort of each gripper
    :returns: None if no effort was measured
    :raises ConfigError: if a threshold is for a joint that is not there
    """
    if episode.efforts is None:
        return None
    unknown = sorted(set(thresholds) - set(episode.joints))
    if unknown:
        raise ConfigError(
            f'no joint {", ".join(unknown)} in episode {episode.name}; it has '
            f'{", ".join(episode.joints)}'
        )
    efforts = np.abs(episode.efforts.values)
    limits = dict(thresholds) or {
        joint: CONTACT_SHARE * float(np.nanmax(efforts[:, episode.joints.index(joint)]))
        for joint in episode.gripper_joints
        if np.any(efforts[:, episode.joints.index(joint)] > 0)
    }
    touching = np.zeros(len(efforts), np.bool_)
    for joint, limit in limits.items():
        touching |= _touching(efforts[:, episode.joints.index(joint)], limit)
    return float(touching.mean()) if limits and len(touching) else None


def _told(episode: Episode, column: int) -> Series | None:
    for series in (episode.commands, episode.states):
        if series is not None and np.any(~np.isnan(series.values[:, column])):
            return series
    return None


def _touching(efforts: npt.NDArray[np.float64], limit: float) -> npt.NDArray[np.bool_]:
    """Return where contact lasts: it begins at the threshold and ends below a share of it."""
    touching, found = False, np.zeros(len(efforts), np.bool_)
    for row, effort in enumerate(efforts):
        touching = bool(effort >= (RELEASE_SHARE * limit if touching else limit))
        found[row] = touching
    return found
