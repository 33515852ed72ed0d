# SPDX-License-Identifier: Apache-2.0
"""What an episode holds: rates, gaps, switches, contact."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.episode import Camera, Episode, Series
from xinfer_ros.episodes.grippers import GripperSwitch, contact_share, gripper_switches

_GAP = 1.5  # times the usual spacing


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    How regularly something came.

    :param count: how often
    :param rate_hz: one over the usual spacing, 0 if it came less than twice
    :param dropped: how many are missing in the gaps
    :param longest_gap_s: longest time between two [s]
    """

    count: int
    rate_hz: float
    dropped: int
    longest_gap_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSummary:
    """
    One camera.

    :param name: its name
    :param stored: how its pictures are kept
    :param height: [pixels]
    :param width: [pixels]
    :param timing: by the camera's own stamps where it has any
    """

    name: str
    stored: str
    height: int
    width: int
    timing: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSummary:
    """
    What an episode holds.

    :param name: its name
    :param format: in which it is kept
    :param duration_s: its length [s]
    :param task: its instruction
    :param joints: its joints
    :param states: of the measured joints, None if there are none
    :param commands: of what joints were told, None if there is nothing
    :param cameras: its cameras
    :param switches: of its grippers
    :param contact_share: share of the time in contact, 0 to 1; None if no effort was measured
    :param warnings: what is wrong with it
    """

    name: str
    format: str
    duration_s: float
    task: str
    joints: tuple[str, ...]
    states: Timing | None
    commands: Timing | None
    cameras: tuple[CameraSummary, ...]
    switches: tuple[GripperSwitch, ...]
    contact_share: float | None
    warnings: tuple[str, ...]


def timing(times_ns: npt.NDArray[np.int64]) -> Timing:
    """
    Return how regularly something came.

    :param times_ns: when it came, ``(T,)`` [ns]
    """
    spacings_ns = np.diff(times_ns)
    if not len(spacings_ns) or not np.any(spacings_ns > 0):
        return Timing(count=len(times_ns), rate_hz=0.0, dropped=0, longest_gap_s=0.0)
    usual_ns = float(np.median(spacings_ns[spacings_ns > 0]))
    gaps = spacings_ns[spacings_ns > _GAP * usual_ns]
    return Timing(
        count=len(times_ns),
        rate_hz=1e9 / usual_ns,
        dropped=int(np.sum(np.round(gaps / usual_ns) - 1)),
        longest_gap_s=float(spacings_ns.max()) / 1e9,
    )


def summary(episode: Episode, format: str, thresholds: Mapping[str, float]) -> EpisodeSummary:
    """
    Return what an episode holds.

    :param episode: the episode
    :param format: in which it is kept
    :param thresholds: effort at which contact begins, by joint; see ``contact_share``
    """
    return EpisodeSummary(
        name=episode.name,
        format=format,
        duration_s=episode.duration_ns / 1e9,
        task=episode.task,
        joints=episode.joints,
        states=_timing(episode.states),
        commands=_timing(episode.commands),
        cameras=tuple(map(_camera, episode.cameras)),
        switches=gripper_switches(episode),
        contact_share=contact_share(episode, thresholds),
        warnings=episode.warnings,
    )


def _timing(series: Series | None) -> Timing | None:
    return None if series is None else timing(series.times_ns)


def _camera(camera: Camera) -> CameraSummary:
    stamps_ns = camera.stamps_ns
    own = len(stamps_ns) and stamps_ns[0] > 0 and bool(np.all(np.diff(stamps_ns) > 0))
    return CameraSummary(
        name=camera.name,
        stored=camera.stored or camera.encoding,
        height=camera.height,
        width=camera.width,
        timing=timing(stamps_ns if own else camera.times_ns),
    )
