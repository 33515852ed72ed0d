# SPDX-License-Identifier: Apache-2.0
"""Observations and chunks read and written as bytes, against what rclpy makes of them."""

from array import array
from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.errors import Reason
from xinfer_ros.msg import ActionChunk
from xinfer_ros.msg import CameraFrame as CameraFrameMsg
from xinfer_ros.msg import Observation as ObservationMsg
from xinfer_ros.ros import convert
from xinfer_ros.ros.chunk_wire import answer_bytes
from xinfer_ros.ros.observation_wire import ObservationReader, Received

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=9)
FLOATS = st.floats(width=32, allow_nan=False)


def _through_rclpy(data: bytes) -> Received:
    return convert.received(deserialize_message(data, ObservationMsg))


def _refuse(data: bytes) -> Received:
    raise ValueError('laid out differently')


@st.composite
def _frames(draw: Any) -> Any:
    numbers = {name: draw(U32) for name in ('height', 'width', 'step')}
    frame = CameraFrameMsg(name=draw(TEXT), encoding=draw(TEXT), **numbers)
    frame.compressed, frame.is_bigendian = draw(st.booleans()), draw(st.booleans())
    frame.data = array('B', draw(st.binary(max_size=9)))
    return frame


@st.composite
def _observations(draw: Any) -> Any:
    message = ObservationMsg(
        instruction=draw(TEXT),
        joint_names=draw(st.lists(TEXT, max_size=4)),
        images=draw(st.lists(_frames(), max_size=3)),
    )
    message.stamp.sec, message.stamp.nanosec = draw(st.integers(0, 2**31 - 1)), draw(U32)
    for name, kind in message.get_fields_and_field_types().items():
        if kind in ('uint64', 'int64', 'uint32'):
            value = draw({'uint64': U64, 'int64': I64, 'uint32': U32}[kind])
            setattr(message, name, value)
    message.state = array('f', draw(st.lists(FLOATS, max_size=4)))
    message.leftover_steps = draw(st.integers(0, 3))
    size = message.leftover_steps * len(message.joint_names)
    message.leftover = array('f', draw(st.lists(FLOATS, min_size=size, max_size=size)))
    return message


def _plain(value: Any) -> Any:
    """Return an observation as lists, so that it can be compared."""
    if isinstance(value, Observation | CameraFrame):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tolist()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return bytes(value) if isinstance(value, memoryview | array) else value


@given(_observations())
@settings(max_examples=100, deadline=None)
def test_an_observation_is_read_as_rclpy_reads_it(message: Any) -> None:
    data, reader = serialize_message(message), ObservationReader(_refuse)
    expected = _through_rclpy(data)
    for _ in range(2):  # joint names are known the second time
        got = reader.read(data)
        assert _plain(got.observation) == _plain(expected.observation)
        assert (got.stamp_ns, got.refusal is None) == (expected.stamp_ns, expected.refusal is None)


@given(_observations(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_message_that_is_cut_off_is_told_and_nothing_else(message: Any, data: Any) -> None:
    """SE-01: whatever comes is an observation or a ValueError."""
    whole = serialize_message(message)
    cut = data.draw(st.integers(0, len(whole) - 4))
    with pytest.raises(ValueError, match=r'is cut off|laid out differently'):
        ObservationReader(_refuse).read(whole[:cut])


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    """SE-01: no payload does more than that."""
    with suppress(ValueError):
        got = ObservationReader(_refuse).read(b'\0\1\0\0' + data)
        assert isinstance(got, Received)


def test_joints_that_change_their_names_are_read_anew() -> None:
    reader = ObservationReader(_refuse)
    for names in (['a', 'b'], ['a', 'bc'], ['a'], [], ['a', 'b']):
        data = serialize_message(ObservationMsg(joint_names=names))
        assert reader.read(data).observation.joint_names == tuple(names)


def test_a_message_of_a_big_endian_host_is_left_to_rclpy() -> None:
    data = b'\0\0\0\0' + bytes(100)
    asked: list[bytes] = []

    def read(data: bytes) -> Received:
        asked.append(data)
        return _through_rclpy(serialize_message(ObservationMsg()))

    assert ObservationReader(read).read(data).observation.request_id == 0
    assert asked == [data]


def test_who_asks_is_known_although_what_is_asked_can_not_be_taken_in() -> None:
    """TR-09: stamp 0 is UNSTAMPED; and a leftover of another size than it says."""
    message = ObservationMsg(request_id=7)
    for broken, reason in ((message, Reason.UNSTAMPED), (_misfit(), Reason.REJECTED_LEFTOVER)):
        for read in (ObservationReader(_refuse).read, _through_rclpy):
            got = read(serialize_message(broken))
            assert got.refusal is not None
            assert (got.observation.request_id, got.refusal.reason) == (7, reason)


def _misfit() -> Any:
    message = ObservationMsg(request_id=7, leftover_steps=9, joint_names=['a'])
    message.stamp.sec = 1
    return message


@given(
    numbers=st.fixed_dictionaries(
        {
            'session': U64, 'episode': U32, 'request_id': U64, 'epoch': U64, 'start_step': U64,
            'frozen_steps': U32, 'keyframe_spacing_ns': I64, 'ask_after_ns': I64,
        }
    ),
    times=st.fixed_dictionaries(dict.fromkeys(ServerTimes.__slots__, I64)),
    names=st.lists(TEXT, max_size=3),
    num_rows=st.integers(0, 3),
    detail=TEXT,
    degraded=st.booleans(),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_chunk_is_written_as_rclpy_writes_it(
    numbers: dict[str, int],
    times: dict[str, int],
    names: list[str],
    num_rows: int,
    detail: str,
    degraded: bool,
) -> None:
    answer = Answer(
        **numbers,
        reason=Reason.EXPIRED,
        detail=detail,
        joint_names=tuple(names),
        rows=np.arange(num_rows * len(names), dtype=np.float32).reshape(num_rows, len(names)),
        degraded=degraded,
        times=ServerTimes(**times),
    )
    expected = convert.from_answer(answer)
    assert deserialize_message(answer_bytes(answer), ActionChunk) == expected
    # but for what a serialiser leaves in its buffer beyond the end
    assert 0 <= len(serialize_message(expected)) - len(answer_bytes(answer)) < 4
