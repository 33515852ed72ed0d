# SPDX-License-Identifier: Apache-2.0
"""
Observations as they lie in a message's bytes.

rclpy makes Python objects of a whole message, field by field through its setters, which costs
more than all that the server does with it afterwards. Here the pictures and numbers stay where
they are. The layout is that of plain CDR, as msg/Observation.msg has the fields.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.errors import Reason, Rejected

LITTLE_ENDIAN_CDR = b'\0\1'
HEADER_BYTES = 4  # in front of the fields; they are aligned from its end on
MAX_JOINTS = 1024
# stamp, session, episode, request_id, executed_steps
_HEAD = struct.Struct('<4xiIQI4xQQ')
_COUNT = struct.Struct('<I')
_SIZE = struct.Struct('<IIIB')  # height, width, step, is_bigendian
_TIMES = struct.Struct('<qqI4xqI')  # budget to leftover_steps
_TOLD = struct.Struct('<QQQq')  # ticks to round_trip_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """
    An observation as it came.

    :param stamp_ns: when the robot says that it packed it, its wall clock; 0: not told [ns]
    :param refusal: why it can't be taken in; then who asks is right, but not all that is asked
    """

    observation: Observation
    stamp_ns: int
    refusal: Rejected | None = None


class ObservationReader:
    """
    Reads the observations of one robot; not thread-safe.

    :param otherwise: reads a message that is laid out differently, such as by a big-endian host
    """

    def __init__(self, otherwise: Callable[[bytes], Received]) -> None:
        self._otherwise = otherwise
        self._names, self._names_bytes = tuple[str, ...](), b''

    def read(self, data: bytes) -> Received:
        """
        Return the observation in a message; pictures, state and leftover stay in it.

        :param data: the message as it came, with its header
        :raises ValueError: if it is cut off or is no observation
        """
        if data[:2] != LITTLE_ENDIAN_CDR:
            return self._otherwise(data)
        try:
            return self._read(data)
        except struct.error as error:
            raise ValueError(f'an observation of {len(data)} bytes is cut off: {error}') from None

    def _read(self, data: bytes) -> Received:
        sec, nanosec, session, episode, request_id, executed_steps = _HEAD.unpack_from(data)
        instruction, at = _text(data, _HEAD.size)
        names, at = self._joint_names(data, at)
        state, at = _floats(data, at)
        images, at = _images(data, at)
        at = _aligned(at)
        budget_ns, period_ns, commitment, spacing_ns, rows = _TIMES.unpack_from(data, at)
        leftover, at = _floats(data, at + _TIMES.size)
        ticks, starved, answered, round_trip_ns = _TOLD.unpack_from(data, _aligned(at))
        fits = leftover.size == rows * len(names)
        observation = Observation(
            session=session,
            episode=episode,
            request_id=request_id,
            executed_steps=executed_steps,
            instruction=instruction,
            joint_names=names,
            state=state,
            images=images,
            budget_ns=budget_ns,
            minimum_period_ns=period_ns,
            commitment_steps=commitment,
            keyframe_spacing_ns=spacing_ns,
            leftover=leftover.reshape(rows, len(names)) if fits else _NO_ROWS,
            ticks=ticks,
            starved_ticks=starved,
            answered_request_id=answered,
            round_trip_ns=round_trip_ns,
        )
        stamp_ns = sec * 1_000_000_000 + nanosec
        refusal = None if fits else misfit(leftover.size, rows, len(names))
        return Received(
            observation=observation, stamp_ns=stamp_ns, refusal=refusal or unstamped(stamp_ns)
        )

    def _joint_names(self, data: bytes, at: int) -> tuple[tuple[str, ...], int]:
        """Return the names and what follows; a robot's are the same in each of its messages."""
        start = at + -at % 4
        if self._names_bytes and data.startswith(self._names_bytes, start):
            return self._names, start + len(self._names_bytes)
        (count,) = _COUNT.unpack_from(data, start)
        if count > MAX_JOINTS:
            raise ValueError(f'{count} joint names; {MAX_JOINTS} are allowed')
        names, at = [], start + _COUNT.size
        for _ in range(count):
            name, at = _text(data, at)
            names.append(name)
        self._names, self._names_bytes = tuple(names), data[start:at]
        return self._names, at


_NO_ROWS: Rows = np.zeros((0, 0), np.float32)


def misfit(values: int, rows: int, joints: int) -> Rejected:
    """Return why a leftover can't be taken in that has more or fewer values than it says."""
    return Rejected(
        Reason.REJECTED_LEFTOVER,
        f'{values} values for {rows} rows of {joints} joints; they are neither cut nor padded',
    )


def unstamped(stamp_ns: int) -> Rejected | None:
    """Return why an observation can't be taken in that does not say when it was packed."""
    if stamp_ns:
        return None
    return Rejected(
        Reason.UNSTAMPED,
        'the observation has stamp 0; with use_sim_time, wait for /clock before asking',
    )


def _aligned(at: int) -> int:
    """Return where a field of 8 bytes begins that comes next."""
    return at + (HEADER_BYTES - at) % 8


def _end(data: bytes, at: int, size: int) -> int:
    """Return the end of some bytes; ValueError if there are fewer."""
    end = at + size
    if end > len(data):
        raise ValueError(f'an observation of {len(data)} bytes is cut off: {end} are needed')
    return end


def _text(data: bytes, at: int) -> tuple[str, int]:
    at += -at % 4
    (length,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    end = _end(data, at, length)
    return data[at : end - 1].decode(errors='replace') if length else '', end


def _floats(data: bytes, at: int) -> tuple[Rows, int]:
    at += -at % 4
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    end = _end(data, at, 4 * count)
    return np.frombuffer(data, np.float32, count, at), end


def _images(data: bytes, at: int) -> tuple[tuple[CameraFrame, ...], int]:
    at += -at % 4
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    view = memoryview(data)
    frames: list[CameraFrame] = []
    for _ in range(count):
        frame, at = _image(data, view, at)
        frames.append(frame)
    return tuple(frames), at


def _image(data: bytes, view: Any, at: int) -> tuple[CameraFrame, int]:
    name, at = _text(data, at)
    compressed = data[_end(data, at, 1) - 1] != 0
    encoding, at = _text(data, at + 1)
    at += -at % 4
    height, width, step, is_bigendian = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    at += -at % 4
    (size,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    end = _end(data, at, size)
    frame = CameraFrame(
        name=name,
        compressed=compressed,
        encoding=encoding,
        height=height,
        width=width,
        step=step,
        is_bigendian=is_bigendian != 0,
        data=view[at:end],
    )
    return frame, end
