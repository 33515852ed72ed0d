# SPDX-License-Identifier: Apache-2.0
"""An episode as rows at common times, for formats that keep one row a keyframe."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.episode import Camera, Episode, Frame
from xinfer_ros.errors import ConfigError

_WHOLE = 0.001  # share by which a rate may differ from a whole number that is taken for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyframes:
    """
    The times at which everything is taken as it was.

    :param times_ns: after the start of the episode, ``(T,)`` [ns]
    :param rate_hz: one over their usual spacing
    """

    times_ns: npt.NDArray[np.int64]
    rate_hz: float

    def frames(self, camera: Camera) -> Iterator[Frame]:
        """Yield the newest frame at each time, the first one before there is any."""
        frames = camera.frames()
        newest = next(frames, None)
        if newest is None:
            raise ConfigError(f'camera {camera.name} has no frame that can be read')
        coming = next(frames, None)
        for time_ns in self.times_ns:
            while coming is not None and coming.time_ns <= time_ns:
                newest, coming = coming, next(frames, None)
            yield newest


def keyframes(episode: Episode) -> Keyframes:
    """
    Return the keyframes of an episode as they were recorded.

    :raises ConfigError: if it has neither pictures nor joints
    """
    times_ns = episode.keyframes_ns()
    return Keyframes(times_ns=times_ns, rate_hz=_rate_hz(times_ns))


def regular_keyframes(episode: Episode) -> Keyframes:
    """
    Return evenly spaced keyframes, at the usual rate of the episode.

    :raises ConfigError: if it has neither pictures nor joints
    """
    recorded = episode.keyframes_ns()
    rate_hz = _rate_hz(recorded)
    first, last = int(recorded[0]), int(recorded[-1])
    count = round((last - first) / 1e9 * rate_hz) + 1
    times_ns = first + np.round(np.arange(count) * 1e9 / rate_hz).astype(np.int64)
    return Keyframes(times_ns=times_ns, rate_hz=rate_hz)


def _rate_hz(times_ns: npt.NDArray[np.int64]) -> float:
    spacings_ns = np.diff(times_ns)
    if not np.any(spacings_ns > 0):
        raise ConfigError('an episode of one keyframe has no rate')
    rate_hz = 1e9 / float(np.median(spacings_ns[spacings_ns > 0]))
    return float(round(rate_hz)) if abs(rate_hz - round(rate_hz)) < _WHOLE * rate_hz else rate_hz
