# SPDX-License-Identifier: Apache-2.0
"""Pictures of an openpi observation as camera frames; no pixel is encoded or decoded here."""

import cv2
import numpy as np
import numpy.typing as npt

from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.unpacker import Value, described

_JPEG, _PNG = b'\xff\xd8', b'\x89PNG'
_ENCODINGS = {1: 'mono8', 3: 'rgb8', 4: 'rgba8'}


def camera_frame(name: str, picture: Value, key: str) -> CameraFrame:
    """
    Return a picture as a camera frame.

    :param name: of the camera
    :param picture: uint8 ``(height, width, channels)``, or ``(channels, height, width)``, red
        first, or a JPEG or PNG file as bytes
    :param key: under which it stood
    :raises Rejected: REJECTED_IMAGE if it is anything else
    """
    if isinstance(picture, memoryview):
        return _compressed(name, picture, key)
    pixels = _pixels(picture, key)
    if pixels.shape[2] not in _ENCODINGS and pixels.shape[0] in _ENCODINGS:
        pixels = _channels_last(pixels)
    height, width, channels = pixels.shape
    if channels not in _ENCODINGS:
        raise Rejected(
            Reason.REJECTED_IMAGE,
            f'{key}: {channels} channels in the last place of {pixels.shape}; 1, 3 or 4 are '
            'allowed',
        )
    return CameraFrame(
        name=name,
        compressed=False,
        encoding=_ENCODINGS[channels],
        height=height,
        width=width,
        step=width * channels,
        is_bigendian=False,
        data=pixels.reshape(-1),
    )


def _pixels(picture: Value, key: str) -> npt.NDArray[np.uint8]:
    is_picture = isinstance(picture, np.ndarray) and picture.ndim == 3 and picture.size > 0
    if not is_picture or not isinstance(picture, np.ndarray) or picture.dtype != np.uint8:
        raise Rejected(
            Reason.REJECTED_IMAGE,
            f'{key}: expected uint8 of shape (height, width, 3) or (3, height, width); received '
            f'{described(picture)}; convert_to_uint8 of openpi_client.image_tools helps',
        )
    return picture.astype(np.uint8, copy=False)


def _channels_last(planes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    if len(planes) == 1:
        return np.expand_dims(planes[0], 2)
    merged = cv2.merge(list(planes))  # numpy's transposed copy takes forty times as long
    return np.asarray(merged, np.uint8)


def _compressed(name: str, file: memoryview, key: str) -> CameraFrame:
    encoding = {_JPEG: 'jpeg', _PNG[:2]: 'png'}.get(bytes(file[:2]))
    if encoding is None:
        raise Rejected(
            Reason.REJECTED_IMAGE, f'{key}: {len(file)} bytes that are neither JPEG nor PNG'
        )
    return CameraFrame(
        name=name,
        compressed=True,
        encoding=encoding,
        height=0,
        width=0,
        step=0,
        is_bigendian=False,
        data=file,
    )
