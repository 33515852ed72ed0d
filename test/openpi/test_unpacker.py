# SPDX-License-Identifier: Apache-2.0
"""Messages of openpi's robots: what is read, and what is refused by name."""

import math
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.openpi.packer import pack
from xinfer_ros.openpi.unpacker import MAX_VALUES, UnreadableMessage, unpack

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner),
    max_leaves=30,
).filter(lambda value: _depth(value) <= 8)
DTYPES = ('|u1', '|i1', '|b1', '<u2', '>i4', '<i8', '<f2', '<f4', '>f8')


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=1)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@given(PLAIN)
def test_plain_values_are_read_as_msgpack_reads_them(value: Any) -> None:
    assert unpack(msgpack.packb(value)) == value
    assert unpack(msgpack.packb(value, use_single_float=False)) == msgpack.unpackb(pack(value))


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 2**32 - 1))
def test_an_array_comes_back_as_it_was(dtype: str, shape: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    read = unpack(pack({'a': values}))
    assert isinstance(read, dict)
    array = read['a']
    assert isinstance(array, np.ndarray)
    assert array.dtype == values.dtype
    np.testing.assert_array_equal(array, values)


def test_an_array_is_a_view_into_the_message() -> None:
    message = pack({'picture': np.arange(10**6, dtype=np.uint8)})
    read = unpack(message)
    assert isinstance(read, dict)
    assert isinstance(read['picture'], np.ndarray)
    assert not read['picture'].flags.owndata
    assert not read['picture'].flags.writeable


def test_a_scalar_of_numpy_is_a_number() -> None:
    scalar = {b'__npgeneric__': True, b'data': 2.5, b'dtype': '<f8'}
    assert unpack(msgpack.packb({'x': scalar})) == {'x': 2.5}


def _array(**changes: object) -> dict[bytes, object]:
    good: dict[bytes, object] = {
        b'__ndarray__': True, b'data': bytes(12), b'dtype': '<f4', b'shape': [3],
    }  # fmt: skip
    return good | {name.encode(): value for name, value in changes.items()}


NESTED: Any = 0
for _ in range(12):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ('value', 'words'),
    [
        (_array(dtype='|O'), "image: the dtype is '|O'"),
        (_array(dtype='|V4'), "the dtype is '|V4'"),
        (_array(dtype='<c8'), "the dtype is '<c8'"),
        (_array(dtype='<U3'), "the dtype is '<U3'"),
        (_array(dtype='<M8[ns]'), 'the dtype is'),
        (_array(dtype='f4,f4,f4'), 'the dtype is'),
        (_array(dtype=[['a', '<f4']]), 'the dtype is not told'),
        (_array(dtype='x' * 10_000), 'the dtype is'),
        (_array(shape=[4]), 'float32 of shape (4,) is 16 bytes; received 12'),
        (_array(shape=[2**31, 2**31]), 'received 12'),
        (_array(shape=[2**62, 0], data=b''), 'an empty array of shape'),
        (_array(shape=[-3]), 'a shape of whole numbers >= 0'),
        (_array(shape=[3.0]), 'a shape of whole numbers >= 0'),
        (_array(shape=[1, 1, 1, 1, 3]), 'a shape of at most 4 numbers'),
        (_array(shape=3), 'a shape of at most 4 numbers'),
        (_array(data='text'), 'an array without its bytes'),
        ({b'__npgeneric__': True, b'data': 'x', b'dtype': '<f4'}, 'a scalar of numpy that is no'),
        ({b'__npgeneric__': True, b'data': 1, b'dtype': '|O'}, "the dtype is '|O'"),
        ({b'nd': True}, "the key b'nd' is bytes, not text"),
        ({5: 1}, 'a key that is no text of at most 200 characters'),
        ({'x' * 201: 1}, 'a key that is no text of at most 200 characters'),
        (NESTED, 'nested more than 8 deep'),
        ([0] * (MAX_VALUES + 1), f'more than {MAX_VALUES} values'),
        (msgpack.ExtType(5, b'abc'), 'a value of msgpack type 0xc7; extension types'),
        (msgpack.Timestamp(1), 'extension types and timestamps are not taken'),
    ],
)
def test_what_is_no_observation_is_refused_by_name(value: object, words: str) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        unpack(msgpack.packb({'image': value}))
    assert words in str(caught.value)
    assert 'image' in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ('message', 'words'),
    [
        (b'', 'the message: the message ends: 1 bytes are announced, 0 are left'),
        (b'\xc6\xff\xff\xff\xff', '4294967295 bytes are announced, 0 are left'),
        (b'\xdb\xff\xff\xff\xff', '4294967295 bytes are announced'),
        (b'\xdd\xff\xff\xff\xff', '4294967295 values are announced, 0 bytes left'),
        (b'\xdf\xff\xff\xff\xff', '8589934590 values are announced, 0 bytes left'),
        (b'\x82\xa1a\x01\xa1a\x02', "the key 'a' stands twice"),
        (b'\xa2\xff\xfe', 'text that is not in UTF-8'),
        (b'\x01\x02', '1 bytes follow after its end'),
        (b'\xc1', 'of msgpack type 0xc1'),
    ],
)
def test_broken_messages_are_refused_before_anything_is_made(message: bytes, words: str) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        unpack(message)
    assert words in str(caught.value)


def test_a_message_without_an_end_costs_no_more_than_its_values() -> None:
    """Lists of lists, a byte each, would otherwise become a hundred times their size."""
    with pytest.raises(UnreadableMessage, match='nested more than 8 deep'):
        unpack(b'\x91' * 10**6)
    with pytest.raises(UnreadableMessage, match=f'more than {MAX_VALUES} values'):
        unpack(b'\xdd\x00\x0f\x00\x00' + b'\x90' * 0x0F0000)


@given(st.binary(max_size=400))
def test_random_bytes_are_read_as_msgpack_reads_them_or_refused(message: bytes) -> None:
    try:
        value = unpack(message)
    except UnreadableMessage:
        return
    theirs = msgpack.unpackb(message, strict_map_key=False)
    if isinstance(value, memoryview):
        value = value.tobytes()
    same_nan = isinstance(value, float) and math.isnan(value) and math.isnan(theirs)
    assert same_nan or _bare(value) == _bare(theirs)


def _bare(value: Any) -> Any:
    """Return a value with views as bytes and numbers that compare, NaN among them."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in value.items()}
    return bytes(value) if isinstance(value, memoryview | bytes) else repr(value)
