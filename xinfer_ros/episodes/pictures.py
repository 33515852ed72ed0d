# SPDX-License-Identifier: Apache-2.0
"""Pictures of episodes: decoded, and encoded as JPEG."""

import cv2
import numpy as np
import numpy.typing as npt

from xinfer_ros.episodes.episode import JPEG, PNG, RAW_CHANNELS, Frame
from xinfer_ros.errors import ConfigError

JPEG_QUALITY = 95
_TO_RGB = {
    'bgr8': cv2.COLOR_BGR2RGB,
    'rgba8': cv2.COLOR_RGBA2RGB,
    'bgra8': cv2.COLOR_BGRA2RGB,
    'mono8': cv2.COLOR_GRAY2RGB,
}


def decoded(frame: Frame) -> npt.NDArray[np.uint8]:
    """
    Return a picture as RGB ``(height, width, 3)``.

    :raises ConfigError: if it can't be decoded
    """
    data = np.frombuffer(frame.data, np.uint8)
    if frame.encoding in (JPEG, PNG):
        bgr = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
        if bgr is None:
            raise ConfigError(f'a {frame.encoding} picture of {len(data)} bytes is broken')
        return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)
    if frame.encoding not in RAW_CHANNELS:
        raise ConfigError(
            f'pictures are encoded as {frame.encoding!r}; readable: {JPEG}, {PNG}, '
            f'{", ".join(RAW_CHANNELS)}'
        )
    shape = (frame.height, frame.width, RAW_CHANNELS[frame.encoding])
    if len(data) != np.prod(shape):
        raise ConfigError(f'a {frame.encoding} picture {shape} has {len(data)} bytes')
    picture = data.reshape(shape)
    if frame.encoding == 'rgb8':
        return picture
    return np.asarray(cv2.cvtColor(picture, _TO_RGB[frame.encoding]), np.uint8)


def as_jpeg(frame: Frame) -> bytes:
    """
    Return a picture as JPEG bytes, as they are if it is one.

    :raises ConfigError: if it can't be decoded
    """
    if frame.encoding == JPEG:
        return frame.data
    bgr = cv2.cvtColor(decoded(frame), cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode('.jpg', bgr, (cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY))
    if not done:
        raise ConfigError(f'a picture of {frame.height}x{frame.width} can not be encoded as JPEG')
    return bytes(data)


def size_of(data: bytes) -> tuple[int, int]:
    """Return height and width of an encoded picture, 0 and 0 if it is broken."""
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    return (0, 0) if bgr is None else (int(bgr.shape[0]), int(bgr.shape[1]))
