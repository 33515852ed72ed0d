# SPDX-License-Identifier: Apache-2.0
"""
Pictures of robots to pictures of the model: decoded, red first, fitted into the model's size.

Used by the front end too, so this module and what it imports never import torch.
"""

import array
import re
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from xinfer_ros.core.contract import Anchor
from xinfer_ros.models.image_header import ImageError, check_size, read_header

__all__ = ['ImageError', 'decode_compressed', 'decode_raw', 'fit_size']

Bytes: TypeAlias = 'bytes | bytearray | memoryview | array.array[int] | npt.NDArray[np.uint8]'
Pixels = npt.NDArray[np.uint8]

# Channels of a pixel and what makes red, green and blue of them. 8UC3 is missing on purpose: it
# does not say which end is red, and a wrong guess would fail silently.
_RAW_ENCODINGS: dict[str, tuple[int, int | None]] = {
    'rgb8': (3, None),
    'bgr8': (3, cv2.COLOR_BGR2RGB),
    'rgba8': (4, cv2.COLOR_RGBA2RGB),
    'bgra8': (4, cv2.COLOR_BGRA2RGB),
    'mono8': (1, cv2.COLOR_GRAY2RGB),
}
_FORMAT = re.compile(
    r'\s*(?:(?P<source>\w+)\s*;)?\s*(?P<codec>jpe?g|png)(?:\s+compressed(?:\s+(?P<target>\w+))?)?\s*',
    re.IGNORECASE,
)
_FORMATS_ALLOWED = (
    "'jpeg', 'png' and '<encoding>; jpeg compressed <encoding>' (or png) with the encodings "
    + ', '.join(_RAW_ENCODINGS)
)
_SHOWN_CHARACTERS = 60


def decode_raw(
    data: Bytes,
    encoding: str,
    height: int,
    width: int,
    step: int,
    is_bigendian: bool,
    out: Pixels,
    anchor: Anchor = 'centre',
) -> None:
    """
    Write an uncompressed picture into ``out``.

    :param data: ``height * step`` bytes
    :param encoding: rgb8, bgr8, rgba8, bgra8 or mono8 (replicated); alpha is dropped
    :param height: rows [pixels]
    :param width: columns [pixels]
    :param step: bytes from row to row, padding included
    :param is_bigendian: without effect, as all accepted encodings have 8 bits
    :param out: ``(h, w, 3)`` uint8, becomes RGB, fitted as ``fit_size`` says
    :param anchor: where it is put if its proportions are others
    :raises ImageError: if the encoding is another one or the sizes do not fit together
    """
    if encoding not in _RAW_ENCODINGS:
        raise ImageError(
            f'the encoding is {_shown(encoding)}; allowed are {", ".join(_RAW_ENCODINGS)}'
        )
    channels, conversion = _RAW_ENCODINGS[encoding]
    check_size(height, width)
    if step < width * channels:
        raise ImageError(
            f'the step is {step} bytes; {width} pixels of {encoding} need {width * channels}'
        )
    flat = np.frombuffer(data, np.uint8)
    if flat.size != height * step:
        raise ImageError(
            f'the picture has {flat.size} bytes; {height} rows of {step} bytes are {height * step}'
        )
    rows = flat.reshape(height, step)[:, : width * channels]
    _fit(rows.reshape(height, width, channels), conversion, out, anchor)


def decode_compressed(
    data: Bytes,
    format: str,
    out: Pixels,
    anchor: Anchor = 'centre',
) -> None:
    """
    Write a JPEG or PNG into ``out``.

    The file itself says where red is, as every viewer reads it; the encodings in ``format`` only
    tell what the publisher had before it compressed, and are checked, not applied.

    :param data: the file
    :param format: free text of ``sensor_msgs/CompressedImage``, such as ``jpeg``,
        ``rgb8; jpeg compressed bgr8``, ``bgr8; png compressed``
    :param out: ``(h, w, 3)`` uint8, becomes RGB, fitted as ``fit_size`` says
    :param anchor: where it is put if its proportions are others
    :raises ImageError: if the format is another one or the data are not a complete picture of it
    """
    codec = _codec(format)
    encoded = bytes(data)
    header = read_header(encoded)
    if header.codec != codec:
        raise ImageError(f'the format says {codec}, the data are a {header.codec}')
    try:
        pixels = cv2.imdecode(
            np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        )
    except cv2.error as error:
        raise ImageError(f'the {codec} is corrupt: {error.err}') from error
    if pixels is None or pixels.shape != (header.height, header.width, 3):
        raise ImageError(f'the {codec} is corrupt: it can not be decoded')
    _fit(pixels.astype(np.uint8, copy=False), cv2.COLOR_BGR2RGB, out, anchor)


def fit_size(height: int, width: int, target_height: int, target_width: int) -> tuple[int, int]:
    """
    Return the size of a picture that fills the target without changing its proportions.

    :returns: height and width [pixels], at least 1
    Source: openpi and LeRobot, ``resize_with_pad``.
    """
    ratio = max(height / target_height, width / target_width)
    return max(1, int(height / ratio)), max(1, int(width / ratio))


def _codec(text: str) -> str:
    """Return ``jpeg`` or ``png`` as a compressed format names it."""
    match = _FORMAT.fullmatch(text) if len(text) <= _SHOWN_CHARACTERS else None
    encodings = (match['source'], match['target']) if match else ()
    known = all(name is None or name.lower() in _RAW_ENCODINGS for name in encodings)
    if match is None or not known:
        raise ImageError(f'the format is {_shown(text)}; allowed are {_FORMATS_ALLOWED}')
    return 'png' if match['codec'].lower() == 'png' else 'jpeg'


def _shown(text: str) -> str:
    """Return a quoted text of bounded length."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '…'
    return repr(cut)


def _fit(pixels: Pixels, conversion: int | None, out: Pixels, anchor: Anchor) -> None:
    """Scale ``pixels`` into ``out``, black around; ``conversion`` makes them red first."""
    target_height, target_width, _ = out.shape
    height, width = fit_size(pixels.shape[0], pixels.shape[1], target_height, target_width)
    share = 2 if anchor == 'centre' else 1
    top, left = (target_height - height) // share, (target_width - width) // share
    out[:top], out[top + height :] = 0, 0
    inside = out[top : top + height, left : left + width]
    out[top : top + height, :left], out[top : top + height, left + width :] = 0, 0
    scaled = pixels
    if pixels.shape[:2] != (height, width):
        to = inside if conversion is None else None
        resized = cv2.resize(pixels, (width, height), dst=to, interpolation=cv2.INTER_LINEAR)
        scaled = resized.astype(np.uint8, copy=False)
    if conversion is not None:
        cv2.cvtColor(scaled, conversion, dst=inside)
    elif scaled is pixels:
        inside[...] = pixels
