# SPDX-License-Identifier: Apache-2.0
"""An episode: what a robot measured, was told and saw, whatever the format it was kept in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError

_GRIPPER_WORDS = ('gripper', 'finger', 'jaw')
JPEG, PNG = 'jpeg', 'png'
RAW_CHANNELS = {'rgb8': 3, 'bgr8': 3, 'rgba8': 4, 'bgra8': 4, 'mono8': 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """
    Values over time.

    :param times_ns: after the start of the episode, ``(T,)`` int64, not falling [ns]
    :param values: one row a time, ``(T, J)`` float64; NaN where a joint was not told
    """

    times_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        if self.values.ndim != 2 or self.times_ns.shape != self.values.shape[:1]:
            raise ConfigError(
                f'a series of shape {self.values.shape} with times {self.times_ns.shape}; '
                '(T, J) with (T,) is needed'
            )
        if len(self.times_ns) and np.any(np.diff(self.times_ns) < 0):
            raise ConfigError('the times of a series fall; they must be in order')

    def at(self, times_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the newest row at each time, the first one before there is any ``(n, J)``."""
        rows = np.searchsorted(self.times_ns, times_ns, side='right') - 1
        values: npt.NDArray[np.float64] = self.values[np.maximum(rows, 0)]
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """
    One picture.

    :param time_ns: after the start of the episode [ns]
    :param encoding: ``jpeg``, ``png``, or raw: ``rgb8``, ``bgr8``, ``rgba8``, ``bgra8``, ``mono8``
    :param height: [pixels]
    :param width: [pixels]
    :param data: the file, or the rows without padding
    """

    time_ns: int
    encoding: str
    height: int
    width: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """
    A camera; its frames stay where they are until they are asked for.

    :param name: such as ``left_wrist``
    :param encoding: of its frames, see ``Frame``
    :param height: [pixels]
    :param width: [pixels]
    :param times_ns: of its frames after the start of the episode, ``(T,)`` int64 [ns]
    :param stamps_ns: the camera's own times, by which lost frames are told, ``(T,)`` int64 [ns]
    :param read: yields its frames from a time on
    :param stored: how they are kept where that is not their encoding, such as ``h264``
    """

    name: str
    encoding: str
    height: int
    width: int
    times_ns: npt.NDArray[np.int64]
    stamps_ns: npt.NDArray[np.int64]
    read: Callable[[int], Iterator[Frame]] = field(compare=False, repr=False)
    stored: str = ''

    def frames(self, start_ns: int = 0) -> Iterator[Frame]:
        """Yield the frames from a time on [ns]."""
        return self.read(start_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """
    One recording of a robot.

    :param name: its name
    :param joints: names of the joints, columns of the series; no name twice
    :param states: measured positions [rad] or [m], None if there are none
    :param commands: what the joints were told, None if there is nothing
    :param velocities: measured, None if there are none
    :param efforts: measured, None if there are none
    :param cameras: what it saw
    :param task: the instruction, empty if not told
    :param grippers: joints that are grippers; None: those whose names say so
    :param start_ns: wall time of its start, 0 if not told [ns]
    :param warnings: what is wrong with the recording, one line each
    """

    name: str
    joints: tuple[str, ...]
    states: Series | None = None
    commands: Series | None = None
    velocities: Series | None = None
    efforts: Series | None = None
    cameras: tuple[Camera, ...] = ()
    task: str = ''
    grippers: tuple[str, ...] | None = None
    start_ns: int = 0
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        if len(set(self.joints)) != len(self.joints):
            raise ConfigError(f'episode {self.name}: a joint is named twice in {self.joints}')
        for series in (self.states, self.commands, self.velocities, self.efforts):
            if series is not None and series.values.shape[1] != len(self.joints):
                raise ConfigError(
                    f'episode {self.name}: {series.values.shape[1]} columns for '
                    f'{len(self.joints)} joints'
                )

    @property
    def gripper_joints(self) -> tuple[str, ...]:
        """Return the joints that are grippers."""
        if self.grippers is not None:
            return self.grippers
        words = _GRIPPER_WORDS
        return tuple(name for name in self.joints if any(word in name.lower() for word in words))

    @property
    def duration_ns(self) -> int:
        """Return the time of its last sample [ns]."""
        series = (self.states, self.commands, self.velocities, self.efforts)
        times = [one.times_ns for one in series if one is not None]
        times += [camera.times_ns for camera in self.cameras]
        return max((int(stamps[-1]) for stamps in times if len(stamps)), default=0)

    def keyframes_ns(self) -> npt.NDArray[np.int64]:
        """
        Return the times of its keyframes: those of its fastest camera, or else of its states.

        Formats that keep one row a keyframe take everything as it was at these times.

        :raises ConfigError: if there is neither
        """
        times = [camera.times_ns for camera in self.cameras]
        times = times or [one.times_ns for one in (self.states, self.commands) if one is not None]
        if not times:
            raise ConfigError(f'episode {self.name} has no camera, joint state or command')
        return max(times, key=len)
