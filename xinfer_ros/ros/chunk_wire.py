# SPDX-License-Identifier: Apache-2.0
"""Answers as the bytes of a message; the counterpart of ``observation_wire``."""

import functools
import struct
from operator import attrgetter

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.ros.observation_wire import HEADER_BYTES, LITTLE_ENDIAN_CDR

# session, episode, request_id, epoch, reason
_HEAD = struct.Struct('<2s2xQI4xQQH2x')
_COUNT = struct.Struct('<I')
_ROWS = struct.Struct('<II')  # num_rows, values
_FROZEN = struct.Struct('<IB')  # frozen_steps, degraded
_TIMES = struct.Struct('<qqqqqqqq')  # keyframe_spacing_ns to ask_after_ns
_PARTS = attrgetter(*ServerTimes.__slots__)


def answer_bytes(answer: Answer) -> bytes:
    """Return an answer as a whole message of msg/ActionChunk.msg, laid out as plain CDR."""
    head = _HEAD.pack(
        LITTLE_ENDIAN_CDR,
        answer.session,
        answer.episode,
        answer.request_id,
        answer.epoch,
        answer.reason,
    )
    out = bytearray(head)
    out += _text(answer.detail)
    _align(out, 8)
    out += answer.start_step.to_bytes(8, 'little')
    out += _names(answer.joint_names)
    _align(out, 4)
    out += _ROWS.pack(len(answer.rows), answer.rows.size)
    out += answer.rows.astype('<f4', copy=False).tobytes()
    out += _FROZEN.pack(answer.frozen_steps, answer.degraded)
    _align(out, 8)
    spacing_ns, pace_ns = answer.keyframe_spacing_ns, answer.ask_after_ns
    out += _TIMES.pack(spacing_ns, *_PARTS(answer.times), pace_ns)
    return bytes(out)


def _align(out: bytearray, to: int) -> None:
    out.extend(bytes((HEADER_BYTES - len(out)) % to))


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _COUNT.pack(len(encoded) + 1) + encoded + b'\0'


@functools.lru_cache(maxsize=256)
def _names(names: tuple[str, ...]) -> bytes:
    """Return names as they lie from a multiple of 4 on; those of a robot stay the same."""
    out = bytearray(_COUNT.pack(len(names)))
    for name in names:
        out.extend(bytes(-len(out) % 4))
        out += _text(name)
    return bytes(out)
