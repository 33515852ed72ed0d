# SPDX-License-Identifier: Apache-2.0
"""What a JPEG or PNG says about itself, checked before anything is decoded."""

import re
import struct
import zlib
from dataclasses import dataclass

from xinfer_ros.errors import Reason, Rejected

MAX_SIDE = 4096
MAX_COMPRESSED_BYTES = 16 * 2**20

_JPEG_START = b'\xff\xd8'
_PNG_START = b'\x89PNG\r\n\x1a\n'
_MAX_SEGMENTS = 256
_MAX_CHUNKS = 65536
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended, progressive: Huffman, 8 bit
_OTHER_FRAMES = frozenset(range(0xC3, 0xD0)) - {0xC4, 0xC8, 0xCC}
# In a scan: 0xFF that is neither stuffed, a restart marker nor fill.
_MARKER = re.compile(rb'\xff[^\x00\xd0-\xd7\xff]')
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_BLOCK_PIXELS = 64
_DEFLATE_BEST = 1032  # no deflate stream grows by more


class ImageError(Rejected):
    """
    A picture that can not be used.

    :param why: what was found and what is allowed
    """

    def __init__(self, why: str) -> None:
        super().__init__(Reason.REJECTED_IMAGE, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageHeader:
    """
    The size of a compressed picture.

    :param codec: ``jpeg`` or ``png``
    :param height: rows [pixels]
    :param width: columns [pixels]
    """

    codec: str
    height: int
    width: int


def check_size(height: int, width: int) -> None:
    """
    Refuse an empty or absurd picture.

    :raises ImageError: if a side is outside 1 to ``MAX_SIDE``
    """
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise ImageError(
            f'the picture is {height}x{width} (height x width); '
            f'each side must be 1 to {MAX_SIDE} pixels'
        )


def read_header(data: bytes) -> ImageHeader:
    """
    Return the size of a complete JPEG or PNG with 8 bits a channel.

    Walks the whole file by its own lengths without decoding: a truncated file, a broken structure
    and a file too short for the size that it declares are found here.

    :param data: the file
    :raises ImageError: if it is anything else
    """
    if not data:
        raise ImageError('the compressed picture is empty')
    if len(data) > MAX_COMPRESSED_BYTES:
        raise ImageError(
            f'the compressed picture has {len(data)} bytes, allowed are {MAX_COMPRESSED_BYTES}'
        )
    if data.startswith(_JPEG_START):
        return _read_jpeg(data)
    if data.startswith(_PNG_START):
        return _read_png(data)
    raise ImageError(f'the data begin with {data[:8].hex(" ")}: neither a JPEG nor a PNG')


def _read_jpeg(data: bytes) -> ImageHeader:
    header: ImageHeader | None = None
    scans = 0
    position = len(_JPEG_START)
    for _ in range(_MAX_SEGMENTS):
        marker, start, end = _jpeg_segment(data, position)
        if marker == _END_OF_IMAGE:
            if header is None or scans == 0:
                raise ImageError('the JPEG ends before any picture')
            _check_jpeg_length(header, len(data))
            return header
        if marker in _FRAMES:
            if header is not None:
                raise ImageError('the JPEG is corrupt: it has two frame headers')
            header = _jpeg_frame(data[start:end])
        elif marker in _OTHER_FRAMES:
            raise ImageError(
                f'the JPEG is of kind 0x{marker:02x}; allowed are baseline and progressive'
            )
        position = end
        if marker == _START_OF_SCAN:
            if header is None:
                raise ImageError('the JPEG is corrupt: a scan comes before the frame header')
            scans += 1
            following = _MARKER.search(data, end)
            if following is None:
                raise ImageError('the JPEG is truncated: it has no end marker')
            position = following.start()
    raise ImageError(f'the JPEG is corrupt: more than {_MAX_SEGMENTS} segments')


def _jpeg_segment(data: bytes, position: int) -> tuple[int, int, int]:
    """Return marker, start and end of the payload of the segment at ``position``."""
    while data[position : position + 2] == b'\xff\xff':  # fill
        position += 1
    head = data[position : position + 4]
    if len(head) >= 2 and head[0] == 0xFF and head[1] == _END_OF_IMAGE:
        return _END_OF_IMAGE, position + 2, position + 2
    if len(head) < 4:
        raise ImageError('the JPEG is truncated: it has no end marker')
    if head[0] != 0xFF or head[1] < 0xC0 or 0xD0 <= head[1] <= 0xD8:
        raise ImageError(f'the JPEG is corrupt: {head[:2].hex(" ")} where a marker should be')
    end = position + 2 + int.from_bytes(head[2:4], 'big')
    if end < position + 4:
        raise ImageError('the JPEG is corrupt: a segment is shorter than its own head')
    if end > len(data):
        raise ImageError('the JPEG is truncated within a segment')
    return head[1], position + 4, end


def _jpeg_frame(payload: bytes) -> ImageHeader:
    if len(payload) < 6:
        raise ImageError('the JPEG is corrupt: its frame header is too short')
    bits, height, width, channels = struct.unpack('>BHHB', payload[:6])
    if bits != 8 or channels not in (1, 3):
        raise ImageError(
            f'the JPEG has {channels} channels of {bits} bits; allowed are 1 or 3 of 8 bits'
        )
    check_size(height, width)
    return ImageHeader(codec='jpeg', height=height, width=width)


def _check_jpeg_length(header: ImageHeader, num_bytes: int) -> None:
    """Refuse a file with less than one bit for each block of brightness."""
    blocks = header.height * header.width // _BLOCK_PIXELS
    if num_bytes * 8 < blocks:
        raise ImageError(
            f'the JPEG declares {header.height}x{header.width} pixels, '
            f'its {num_bytes} bytes can not hold them'
        )


def _read_png(data: bytes) -> ImageHeader:
    header: ImageHeader | None = None
    raw_bytes = packed_bytes = 0
    position = len(_PNG_START)
    for _ in range(_MAX_CHUNKS):
        if position + 12 > len(data):
            raise ImageError('the PNG is truncated: it has no end chunk')
        length, kind = struct.unpack_from('>I4s', data, position)
        end = position + 12 + length
        if end > len(data):
            raise ImageError('the PNG is truncated within a chunk')
        body = memoryview(data)[position + 4 : end - 4]
        if zlib.crc32(body) != int.from_bytes(data[end - 4 : end], 'big'):
            raise ImageError(f'the PNG is corrupt: wrong checksum of chunk {kind!r}')
        if header is None:
            header, raw_bytes = _png_frame(kind, bytes(body[4:]))
        elif kind == b'IDAT':
            packed_bytes += length
        elif kind == b'IEND':
            if packed_bytes * _DEFLATE_BEST < raw_bytes:
                raise ImageError(
                    f'the PNG declares {header.height}x{header.width} pixels, '
                    f'its {packed_bytes} bytes can not hold them'
                )
            return header
        position = end
    raise ImageError(f'the PNG is corrupt: more than {_MAX_CHUNKS} chunks')


def _png_frame(kind: bytes, payload: bytes) -> tuple[ImageHeader, int]:
    """Return the header and the size of the picture before compression [bytes]."""
    if kind != b'IHDR' or len(payload) != 13:
        raise ImageError(f'the PNG is corrupt: it begins with chunk {kind!r}, not with IHDR')
    width, height, bits, colour = struct.unpack('>IIBB', payload[:10])
    if bits != 8 or colour not in _PNG_CHANNELS:
        raise ImageError(
            f'the PNG has {bits} bits a channel and colour type {colour}; '
            'allowed are 8 bits and types 0, 2, 3, 4 and 6'
        )
    check_size(height, width)
    header = ImageHeader(codec='png', height=height, width=width)
    return header, height * (1 + width * _PNG_CHANNELS[colour])
