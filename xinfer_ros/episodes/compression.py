# SPDX-License-Identifier: Apache-2.0
"""What rosbag2 compresses: whole files, single messages, chunks of MCAP."""

import shutil
import zlib
from pathlib import Path
from typing import BinaryIO

import lz4.frame
import zstandard

from xinfer_ros.errors import ConfigError

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
MAX_UNPACKED_BYTES = 2**31  # one message or chunk; a larger one is taken for damage
FREE_MARGIN_BYTES = 256 * 2**20  # left on the disk when a file has been unpacked
_PIECE_BYTES = 2**20


class DamageError(Exception):
    """Bytes of a recording are not what was written."""


def unpacked_message(data: bytes) -> bytes:
    """
    Return a message, unpacked if it is a zstd frame (CDR never begins like one).

    :raises DamageError: if it can't be unpacked
    """
    if data[:4] != ZSTD_MAGIC:
        return data
    try:
        size = zstandard.get_frame_parameters(data).content_size
        if size > MAX_UNPACKED_BYTES and size != zstandard.CONTENTSIZE_UNKNOWN:
            raise DamageError(f'a message of {size} bytes')
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_UNPACKED_BYTES)
    except zstandard.ZstdError as error:
        raise DamageError(str(error)) from error


def unpacked_chunk(data: bytes, compression: str, size: int, checksum: int) -> bytes:
    """
    Return the records of an MCAP chunk.

    :param data: as stored
    :param compression: ``zstd``, ``lz4`` or empty
    :param size: bytes when unpacked
    :param checksum: CRC-32 of the unpacked bytes, 0 if there is none
    :raises DamageError: if they can't be unpacked
    """
    if size > MAX_UNPACKED_BYTES:
        raise DamageError(f'a chunk of {size} bytes')
    try:
        if compression == 'zstd':
            records = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        elif compression == 'lz4':
            records = lz4.frame.decompress(data)
        elif compression == '':
            records = data
        else:
            raise DamageError(f'compression {compression!r}; readable: zstd, lz4, none')
    except (zstandard.ZstdError, RuntimeError) as error:
        raise DamageError(str(error)) from error
    if len(records) != size or (checksum and zlib.crc32(records) != checksum):
        raise DamageError('a chunk with another checksum')
    return records


def unpacked_part(data: bytes, compression: str) -> bytes:
    """Return what can be had of a chunk that was cut short."""
    try:
        if compression == 'zstd':
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
        if compression == 'lz4':
            part: bytes = lz4.frame.LZ4FrameDecompressor().decompress(data)
            return part
    except (zstandard.ZstdError, RuntimeError):
        return b''
    return data if compression == '' else b''


def unpack_file(packed: Path, folder: Path) -> tuple[Path, bool]:
    """
    Unpack a file that was compressed as a whole.

    :param packed: such as ``bag_0.mcap.zstd``
    :param folder: where to; the space there is checked before
    :returns: the file, and whether it is whole
    :raises ConfigError: if it does not fit on the disk or is no zstd file
    """
    target = folder / packed.stem
    with packed.open('rb') as source:
        size = _content_size(packed, source.read(18))
        known = size != zstandard.CONTENTSIZE_UNKNOWN
        _check_space(packed, folder, size if known else packed.stat().st_size)
        source.seek(0)
        written = _copy(packed, source, target, folder)
    return target, written == size if known else True


def _content_size(packed: Path, head: bytes) -> int:
    try:
        return zstandard.get_frame_parameters(head).content_size
    except zstandard.ZstdError as error:
        raise ConfigError(
            f'{packed}: it is no zstd file; it begins with {head[:4]!r}: {error}'
        ) from error


def _copy(packed: Path, source: BinaryIO, target: Path, folder: Path) -> int:
    written = 0
    reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
    try:
        with target.open('wb') as output:
            while piece := reader.read(_PIECE_BYTES):
                if written % (64 * _PIECE_BYTES) == 0:
                    _check_space(packed, folder, len(piece))
                written += output.write(piece)
    except zstandard.ZstdError as error:
        if not written:
            raise ConfigError(f'{packed}: {error}') from error
    return written


def _check_space(packed: Path, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed + FREE_MARGIN_BYTES > free:
        raise ConfigError(
            f'{packed} needs {needed / 1e9:.2f} GB to be unpacked, and {folder} has '
            f'{free / 1e9:.2f} GB free, {FREE_MARGIN_BYTES / 1e9:.2f} GB of which stay free; '
            'make room, or set TMPDIR to a folder on a larger disk'
        )
