# SPDX-License-Identifier: Apache-2.0
"""What robots send to peers: recorded moments, packed before anything is timed."""

import struct
from dataclasses import dataclass

import numpy as np

from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.moments import Moment, moments
from xinfer_ros.openpi.packer import pack

MARK = 'mark'  # key of an observation that a peer answers with what stood there
_MARK = struct.Struct('<qq')
MARK_BYTES = _MARK.size
_FIXMAP = 0x80  # of msgpack: a map of up to 15 entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who has asked, and for what; comes back with the answer."""

    robot: int
    request_id: int

    def packed(self) -> bytes:
        """Return it as ``MARK_BYTES`` bytes."""
        return _MARK.pack(self.robot, self.request_id)

    @classmethod
    def unpacked(cls, data: bytes) -> 'Mark | None':
        """Return the mark in some bytes, None if they are none."""
        if len(data) != MARK_BYTES:
            return None
        robot, request_id = _MARK.unpack(data)
        return cls(robot=robot, request_id=request_id)


class PeerRequests:
    """
    Observations of one episode as openpi's robots send them: raw pictures, state, prompt.

    :param episode: with every camera and joint that it has
    :raises ConfigError: if it has no pictures or states
    """

    def __init__(self, episode: Episode) -> None:
        cameras = {camera.name: camera.name for camera in episode.cameras}
        found = moments(episode, cameras, raw=True)
        self._packed = [_entries(moment, episode.task or '') for moment in found]

    def request(self, turn: int, mark: Mark) -> bytes:
        """Return the next observation, with a mark; nothing of it is packed now but the mark."""
        count, entries = self._packed[turn % len(self._packed)]
        head = bytes([_FIXMAP | (count + 1)])
        return b''.join((head, entries, pack(MARK), pack(mark.packed())))


def _entries(moment: Moment, prompt: str) -> tuple[int, bytes]:
    """Return how many entries an observation has, and the entries one behind the other."""
    images = {
        frame.name: np.frombuffer(frame.data, np.uint8).reshape(frame.height, frame.width, -1)
        for frame in moment.frames
    }
    observation = {'images': images, 'state': moment.state.astype(np.float64), 'prompt': prompt}
    return len(observation), pack(observation)[1:]
