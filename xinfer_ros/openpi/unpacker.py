# SPDX-License-Identifier: Apache-2.0
"""
Reads msgpack with numpy arrays, as openpi's robots send it, from somebody who is not trusted.

Written for this: a length is believed only if so many bytes are there, arrays and byte strings are
views into the message, and everything else that it holds is counted before it is made.
"""

import math
import re
import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import XinferError

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = (
    'bool | int | float | str | memoryview | Array | list[Value] | dict[str, Value] | None'
)

MAX_VALUES = 16384
MAX_DEPTH = 8
MAX_RANK = 4
MAX_KEY_LENGTH = 200
_DTYPE = re.compile(r'\|?b1|\|?[iu]1|[<>=]?[iu][248]|[<>=]?f[248]')
_DTYPES_ALLOWED = 'bool, (u)int8 to 64, float16 to 64'
_SHOWN, _SHOWN_PATH = 40, 120
_NUMBERS = {
    code: struct.Struct(form)
    for code, form in {
        0xCA: '>f', 0xCB: '>d', 0xCC: '>B', 0xCD: '>H', 0xCE: '>I', 0xCF: '>Q',
        0xD0: '>b', 0xD1: '>h', 0xD2: '>i', 0xD3: '>q',
    }.items()
}  # fmt: skip
_LENGTHS = {
    code: struct.Struct(form)
    for code, form in {
        0xC4: '>B', 0xC5: '>H', 0xC6: '>I', 0xD9: '>B', 0xDA: '>H', 0xDB: '>I',
        0xDC: '>H', 0xDD: '>I', 0xDE: '>H', 0xDF: '>I',
    }.items()
}  # fmt: skip
_CONSTANTS: dict[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


class UnreadableMessage(XinferError):
    """What came is no observation; the text says where and why, in the sender's words."""


class _Fault(Exception):
    """What is wrong; where it stands is added on the way out, key by key."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str] = []

    def told(self) -> str:
        """Return where and why."""
        where = '/'.join(reversed(self.path))[:_SHOWN_PATH]
        return f'{where or "the message"}: {self.args[0]}'


def unpack(message: bytes) -> Value:
    """
    Return what a message holds; arrays and bytes are views into it.

    :param message: one msgpack value
    :raises UnreadableMessage: if it is anything else, or more than an observation may be
    """
    reader = _Reader(message)
    try:
        value = reader.value(0)
        if reader.left:
            raise _Fault(f'{reader.left} bytes follow after its end')
    except _Fault as fault:
        raise UnreadableMessage(fault.told()) from None
    return value


def described(value: Value) -> str:
    """Return of which kind a value is, in words."""
    if isinstance(value, np.ndarray):
        return f'{value.dtype} of shape {value.shape}'
    return 'bytes' if isinstance(value, memoryview) else type(value).__name__


class _Reader:
    """Goes through a message once."""

    def __init__(self, message: bytes) -> None:
        self._view, self._size = memoryview(message), len(message)
        self._at = 0
        self._values_left = MAX_VALUES

    @property
    def left(self) -> int:
        """Return the bytes that have not been read."""
        return self._size - self._at

    def value(self, depth: int) -> Value:
        """Read one value."""
        self._values_left -= 1
        if self._values_left < 0:
            raise _Fault(f'more than {MAX_VALUES} values; send arrays as numpy arrays')
        if depth > MAX_DEPTH:
            raise _Fault(f'nested more than {MAX_DEPTH} deep; observations are flat')
        code = self._take(1)[0]
        if code < 0x80:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code < 0x90:
            return self._map(code & 0x0F, depth)
        if code < 0xA0:
            return self._list(code & 0x0F, depth)
        if code < 0xC0:
            return self._text(code & 0x1F)
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        if code not in _LENGTHS:
            raise _Fault(
                f'a value of msgpack type 0x{code:02x}; extension types and timestamps are not '
                'taken'
            )
        return self._long(code, int(self._number(_LENGTHS[code])), depth)

    def _long(self, code: int, length: int, depth: int) -> Value:
        """Read a value whose length stands in front of it."""
        if code <= 0xC6:
            return self._take(length)
        if code <= 0xDB:
            return self._text(length)
        return self._list(length, depth) if code <= 0xDD else self._map(length, depth)

    def _take(self, length: int) -> memoryview:
        end = self._at + length
        if end > self._size:
            raise _Fault(f'the message ends: {length} bytes are announced, {self.left} are left')
        taken = self._view[self._at : end]
        self._at = end
        return taken

    def _number(self, form: struct.Struct) -> int | float:
        number: int | float = form.unpack(self._take(form.size))[0]
        return number

    def _text(self, length: int) -> str:
        try:
            return str(self._take(length), 'utf-8')
        except UnicodeDecodeError:
            raise _Fault('text that is not in UTF-8') from None

    def _list(self, length: int, depth: int) -> list[Value]:
        self._check_length(length)
        found: list[Value] = []
        try:
            for _ in range(length):
                found.append(self.value(depth + 1))
        except _Fault as fault:
            fault.path.append(f'[{len(found)}]')
            raise
        return found

    def _map(self, length: int, depth: int) -> Value:
        self._check_length(2 * length)
        found: dict[str | bytes, Value] = {}
        for _ in range(length):
            key = self._key(depth)
            if key in found:
                raise _Fault(f'the key {_shown(key)} stands twice')
            try:
                found[key] = self.value(depth + 1)
            except _Fault as fault:
                fault.path.append(key if isinstance(key, str) else key.decode('latin-1'))
                raise
        return _meaning(found)

    def _check_length(self, parts: int) -> None:
        """Refuse a count that the rest of the message can't hold: each part has a byte."""
        if parts > self.left:
            raise _Fault(f'the message ends: {parts} values are announced, {self.left} bytes left')

    def _key(self, depth: int) -> str | bytes:
        value = self.value(depth + 1)
        key = (
            value.tobytes()
            if isinstance(value, memoryview) and len(value) <= MAX_KEY_LENGTH
            else value
        )
        if not isinstance(key, str | bytes) or len(key) > MAX_KEY_LENGTH:
            raise _Fault(f'a key that is no text of at most {MAX_KEY_LENGTH} characters')
        return key


def _meaning(found: dict[str | bytes, Value]) -> Value:
    """Return what a map stands for: an array, a scalar of numpy, or itself."""
    if b'__ndarray__' in found:
        return _array(found)
    if b'__npgeneric__' in found:
        return _scalar(found)
    named: dict[str, Value] = {}
    for key, value in found.items():
        if isinstance(key, bytes):
            raise _Fault(f'the key {_shown(key)} is bytes, not text')
        named[key] = value
    return named


def _array(found: dict[str | bytes, Value]) -> Array:
    data, shape = found.get(b'data'), found.get(b'shape')
    if not isinstance(data, memoryview):
        raise _Fault('an array without its bytes under data')
    dtype = _dtype(found.get(b'dtype'))
    if not isinstance(shape, list) or len(shape) > MAX_RANK:
        raise _Fault(f'an array needs a shape of at most {MAX_RANK} numbers')
    sizes = [size for size in shape if type(size) is int and size >= 0]
    if len(sizes) != len(shape):
        raise _Fault('an array needs a shape of whole numbers >= 0')
    if math.prod(sizes) * dtype.itemsize != len(data):
        raise _Fault(
            f'{dtype} of shape {tuple(sizes)} is '
            f'{math.prod(sizes) * dtype.itemsize} bytes; received {len(data)}'
        )
    if not data and max(sizes) > MAX_VALUES:
        raise _Fault(f'an empty array of shape {tuple(sizes)}')
    if not data:
        return np.zeros(sizes, dtype)
    return np.frombuffer(data, dtype).reshape(sizes)


def _dtype(text: Value) -> 'np.dtype[np.generic]':
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        shown = _shown(text) if isinstance(text, str) else 'not told'
        raise _Fault(f'the dtype is {shown}; allowed are {_DTYPES_ALLOWED}')
    return np.dtype(text)


def _scalar(found: dict[str | bytes, Value]) -> bool | int | float:
    value = found.get(b'data')
    _dtype(found.get(b'dtype'))
    if not isinstance(value, bool | int | float):
        raise _Fault('a scalar of numpy that is no number')
    return value


def _shown(text: str | bytes) -> str:
    return repr(text[:_SHOWN])
