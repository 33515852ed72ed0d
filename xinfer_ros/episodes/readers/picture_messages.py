# SPDX-License-Identifier: Apache-2.0
"""The pictures of one topic: their times, and one of them as a frame."""

from collections.abc import Sequence

import numpy as np

from xinfer_ros.episodes.episode import JPEG, PNG, RAW_CHANNELS, Frame
from xinfer_ros.episodes.pictures import size_of
from xinfer_ros.episodes.ros_types import COMPRESSED_IMAGE, RosTypes, stamp_ns

_MAGIC = {b'\xff\xd8': JPEG, b'\x89P': PNG}


class PictureMessages:
    """
    Collects the times of the pictures of one topic, and size and encoding of the first.

    :param topic: its name
    :param type_name: ``Image`` or ``CompressedImage``
    :param types: message types
    """

    def __init__(self, topic: str, type_name: str, types: RosTypes) -> None:
        self.topic, self.type_name, self._types = topic, type_name, types
        self.times_ns: list[int] = []
        self.stamps_ns: list[int] = []
        self.encoding = ''
        self.height = self.width = 0

    @property
    def warnings(self) -> Sequence[str]:
        """Return what is wrong with its pictures."""
        if self.encoding in (JPEG, PNG, *RAW_CHANNELS, ''):
            return ()
        known = ', '.join((JPEG, PNG, *RAW_CHANNELS))
        return (f'{self.topic}: {self.encoding!r} pictures are not decoded, only {known}',)

    def take(self, offset_ns: int, data: bytes) -> None:
        """Take in a message."""
        if not self.times_ns:
            frame = frame_of(data, self.type_name, offset_ns, self._types)
            self.encoding, self.height, self.width = frame.encoding, frame.height, frame.width
        self.times_ns.append(offset_ns)
        self.stamps_ns.append(stamp_ns(data))


def frame_of(
    data: bytes,
    type_name: str,
    offset_ns: int,
    types: RosTypes,
    size: tuple[int, int] | None = None,
) -> Frame:
    """
    Return a serialised picture as a frame.

    :param size: height and width if they are known; an encoded picture is decoded to find out
    """
    message = types.parsed(data, type_name)
    if type_name == COMPRESSED_IMAGE:
        picture = bytes(message.data)
        encoding = _MAGIC.get(picture[:2], str(message.format))
        height, width = size or size_of(picture)
    else:
        encoding, height, width = str(message.encoding), int(message.height), int(message.width)
        rows = np.asarray(message.data, np.uint8).reshape(height, -1)
        used = width * RAW_CHANNELS.get(encoding, 0) or rows.shape[1]
        picture = rows[:, :used].tobytes()
    return Frame(time_ns=offset_ns, encoding=encoding, height=height, width=width, data=picture)
