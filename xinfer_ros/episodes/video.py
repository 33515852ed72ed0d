# SPDX-License-Identifier: Apache-2.0
"""Videos of data sets: frames decoded one after the other, and a video made of frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import ConfigError

CODEC, PIXELS = 'libx264', 'yuv420p'
# quality 0 (best) to 51; a key frame at least this often, for a quick start in the middle
_OPTIONS = {'crf': '18', 'preset': 'veryfast', 'g': '8'}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFrame:
    """
    A decoded frame.

    :param time_s: in the video [s]
    :param rgb: picture ``(height, width, 3)``
    """

    time_s: float
    rgb: npt.NDArray[np.uint8]


def video_codec(path: Path) -> str:
    """
    Return the name of the codec of a video.

    :raises ConfigError: if it can't be opened
    """
    try:
        with av.open(str(path)) as container:
            return container.streams.video[0].codec_context.name
    except (OSError, IndexError, av.error.FFmpegError) as error:
        raise ConfigError(f'video {path}: {error}') from error


def video_frames(path: Path, start_s: float, end_s: float) -> Iterator[VideoFrame]:
    """
    Yield the frames between two times.

    :param start_s: the first that is wanted [s]
    :param end_s: where to stop [s]
    :raises ConfigError: if the video can't be decoded
    """
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1  # a fleet decodes many at once
            assert stream.time_base is not None
            container.seek(int(start_s / stream.time_base), stream=stream, backward=True)
            half_s = 0.5 / float(stream.average_rate or 30)
            for frame in container.decode(stream):
                time_s = float((frame.pts or 0) * stream.time_base)
                if time_s > end_s - half_s:
                    return
                if time_s > start_s - half_s:
                    rgb = np.asarray(frame.to_ndarray(format='rgb24'), np.uint8)
                    yield VideoFrame(time_s=time_s, rgb=rgb)
    except (OSError, IndexError, av.error.FFmpegError) as error:
        raise ConfigError(f'video {path}: {error}') from error


class VideoWriter:
    """
    Writes a video. A context.

    :param path: of the file, ``.mp4``
    :param rate: frames a second
    :param height: [pixels], even
    :param width: [pixels], even
    """

    def __init__(self, path: Path, rate: Fraction, height: int, width: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(path), 'w')
        stream = self._container.add_stream(CODEC, rate=rate, options=dict(_OPTIONS))
        assert isinstance(stream, av.VideoStream)
        self._stream = stream
        self._stream.height, self._stream.width = height, width
        self._stream.pix_fmt = PIXELS

    def __enter__(self) -> 'VideoWriter':
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left and close the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def write(self, rgb: npt.NDArray[np.uint8]) -> None:
        """Write the next frame, ``(height, width, 3)``."""
        self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(rgb, format='rgb24')))
