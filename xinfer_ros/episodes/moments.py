# SPDX-License-Identifier: Apache-2.0
"""Moments of an episode as a robot would send them: joint state and a picture of each camera."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.episodes.episode import JPEG, Camera, Episode, Frame
from xinfer_ros.episodes.pictures import as_jpeg, decoded
from xinfer_ros.errors import ConfigError

NUM_MOMENTS = 16  # of an episode; more would only cost memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """
    What a robot measured at one time.

    :param state: ``(joints,)`` float32 in the order of the episode; 0 for what was not told
    :param frames: one a camera
    """

    state: npt.NDArray[np.float32]
    frames: tuple[CameraFrame, ...]


def moments(
    episode: Episode, cameras: Mapping[str, str], *, raw: bool, count: int = NUM_MOMENTS
) -> tuple[Moment, ...]:
    """
    Return moments evenly over an episode, in their order.

    :param cameras: name in the episode of each camera that the robot sends
    :param raw: whether pictures are sent as rgb8 of their recorded size, else as JPEG; what is
        recorded in the other form is converted here, once
    :raises ConfigError: if a camera or the joint states are missing
    """
    if episode.states is None:
        raise ConfigError(f'episode {episode.name} has no joint states to send')
    by_name = {camera.name: camera for camera in episode.cameras}
    missing = [name for name in cameras.values() if name not in by_name]
    if missing:
        raise ConfigError(
            f'episode {episode.name} has no camera {", ".join(missing)}; it has '
            f'{", ".join(by_name) or "none"}; camera_names and camera_topics of the executor say '
            'which is which'
        )
    times_ns = np.linspace(0, episode.duration_ns, count, endpoint=False).astype(np.int64)
    states = np.nan_to_num(episode.states.at(times_ns)).astype(np.float32)
    pictures = {
        ours: _pictures(by_name[theirs], times_ns, raw) for ours, theirs in cameras.items()
    }
    return tuple(
        Moment(
            state=states[place],
            frames=tuple(
                replace(found[place], name=name) for name, found in pictures.items()
            ),
        )
        for place in range(count)
    )  # fmt: skip


def _pictures(camera: Camera, times_ns: npt.NDArray[np.int64], raw: bool) -> list[CameraFrame]:
    """Return the frame of a camera at each time, the last one after its end."""
    found: list[CameraFrame] = []
    newest: Frame | None = None
    for frame in camera.frames():
        newest = frame
        while len(found) < len(times_ns) and frame.time_ns >= times_ns[len(found)]:
            found.append(_as_sent(frame, raw))
        if len(found) == len(times_ns):
            break
    if newest is None:
        raise ConfigError(f'camera {camera.name} has no picture')
    return found + [_as_sent(newest, raw)] * (len(times_ns) - len(found))


def _as_sent(frame: Frame, raw: bool) -> CameraFrame:
    picture = decoded(frame) if raw else None
    return CameraFrame(
        name='',
        compressed=not raw,
        encoding='rgb8' if raw else JPEG,
        height=frame.height,
        width=frame.width,
        step=3 * frame.width if raw else 0,
        is_bigendian=False,
        data=as_jpeg(frame) if picture is None else picture.tobytes(),
    )
