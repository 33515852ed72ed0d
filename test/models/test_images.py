# SPDX-License-Identifier: Apache-2.0
"""Pictures of robots to pictures of the model (case TR-07)."""

import array
import struct
import zlib
from contextlib import suppress

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.errors import Reason
from xinfer_ros.models.images import ImageError, decode_compressed, decode_raw, fit_size

Pixels = npt.NDArray[np.uint8]
_RED = (255, 0, 0)
_RAW_RED = {
    'rgb8': _RED,
    'bgr8': (0, 0, 255),
    'rgba8': (255, 0, 0, 9),
    'bgra8': (0, 0, 255, 9),
}
_JPEG_FORMATS = (
    'jpeg',
    'jpg',
    'JPEG',
    'jpeg compressed bgr8',
    'rgb8; jpeg compressed bgr8',
    'rgb8; jpeg compressed rgb8',
    'bgr8; jpeg compressed bgr8',
    'bgr8; jpeg compressed ',
    'bgra8; jpeg compressed bgr8',
    'rgb8;jpeg compressed',
)
_PNG_FORMATS = (
    'png',
    'bgr8; png compressed bgr8',
    'rgb8; png compressed ',
    'rgba8; png compressed',
)


def _out(height: int = 20, width: int = 30) -> Pixels:
    return np.full((height, width, 3), 77, np.uint8)


def _file(pixels: Pixels, suffix: str, *options: int) -> bytes:
    """Return a file of ``pixels``, blue first, as OpenCV writes it."""
    return cv2.imencode(suffix, pixels, options)[1].tobytes()


def _bgr(colour: tuple[int, int, int], height: int = 40, width: int = 60) -> Pixels:
    return np.full((height, width, 3), colour[::-1], np.uint8)


def _texture(height: int = 48, width: int = 64) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def _near(out: Pixels, colour: tuple[int, int, int]) -> None:
    assert np.abs(out.astype(int) - colour).max() <= 3


@pytest.mark.parametrize('encoding', _RAW_RED)
@pytest.mark.parametrize('padding', [0, 5])
def test_raw_red_stays_red(encoding: str, padding: int) -> None:
    """TR-07: every raw encoding, with and without padding behind the rows."""
    pixel = _RAW_RED[encoding]
    step = 60 * len(pixel) + padding
    rows = np.full((40, step), 200, np.uint8)
    rows[:, : step - padding] = np.tile(np.array(pixel, np.uint8), 60)
    out = _out()
    decode_raw(rows.tobytes(), encoding, 40, 60, step, False, out)
    _near(out, _RED)


@pytest.mark.parametrize('text', _JPEG_FORMATS)
def test_jpeg_red_stays_red(text: str) -> None:
    """TR-07: the file says where red is, whatever the spelling of the format."""
    out = _out()
    decode_compressed(_file(_bgr(_RED), '.jpg'), text, out)
    _near(out, _RED)


@pytest.mark.parametrize('text', _PNG_FORMATS)
@pytest.mark.parametrize('alpha', [False, True])
def test_png_red_stays_red(text: str, alpha: bool) -> None:
    """TR-07: PNG with and without alpha."""
    pixels = _bgr(_RED)
    if alpha:
        pixels = np.dstack((pixels, np.full(pixels.shape[:2], 9, np.uint8)))
    out = _out()
    decode_compressed(_file(pixels, '.png'), text, out)
    _near(out, _RED)


def test_progressive_jpeg_with_restart_markers_is_decoded() -> None:
    options = (cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_RST_INTERVAL, 2)
    expected, out = _out(48, 64), _out(48, 64)
    decode_compressed(_file(_texture(), '.jpg'), 'jpeg', expected)
    decode_compressed(_file(_texture(), '.jpg', *options), 'jpeg', out)
    assert np.abs(out.astype(int) - expected).max() <= 3


def test_grey_is_replicated() -> None:
    """TR-07: mono8 raw, JPEG and PNG."""
    grey = np.tile(np.arange(0, 240, 4, dtype=np.uint8), (40, 1))
    outs = [_out(40, 60) for _ in range(3)]
    decode_raw(grey.tobytes(), 'mono8', 40, 60, 60, False, outs[0])
    decode_compressed(_file(grey, '.png'), 'mono8; png compressed ', outs[1])
    decode_compressed(_file(grey, '.jpg'), 'mono8; jpeg compressed ', outs[2])
    for out in outs:
        assert np.abs(out.astype(int) - grey[..., None]).max() <= 3


def test_png_keeps_every_pixel_in_place() -> None:
    out = _out(48, 64)
    decode_compressed(_file(_texture(), '.png'), 'png', out)
    np.testing.assert_array_equal(out, _texture()[..., ::-1])


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview, np.frombuffer, array.array])
def test_data_may_be_any_buffer(kind: type) -> None:
    red = _bgr(_RED).tobytes()
    if kind is array.array:
        data = array.array('B', red)
    else:
        data = np.frombuffer(red, np.uint8) if kind is np.frombuffer else kind(red)
    out = _out()
    decode_raw(data, 'bgr8', 40, 60, 180, False, out)
    _near(out, _RED)
    compressed = _file(_bgr(_RED), '.png')
    decode_compressed(array.array('B', compressed), 'png', out)
    _near(out, _RED)


@pytest.mark.parametrize(
    ('size', 'fitted'), [((480, 640), (224, 298)), ((224, 320), (224, 320)), ((10, 400), (8, 320))]
)
def test_proportions_are_kept(size: tuple[int, int], fitted: tuple[int, int]) -> None:
    assert fit_size(*size, 224, 320) == fitted


def test_wide_picture_gets_black_above_and_below() -> None:
    out = _out(40, 60)
    decode_raw(_bgr(_RED, 20, 60).tobytes(), 'bgr8', 20, 60, 180, False, out)
    _near(out[10:30], _RED)
    assert not out[:10].any()
    assert not out[30:].any()


def test_tall_picture_gets_black_left_and_right() -> None:
    out = _out(40, 60)
    decode_raw(_bgr(_RED, 80, 40).tobytes(), 'bgr8', 80, 40, 120, False, out)
    _near(out[:, 20:40], _RED)
    assert not out[:, :20].any()
    assert not out[:, 40:].any()


@pytest.mark.parametrize(('height', 'width'), [(20, 60), (80, 40)])
def test_picture_can_be_put_into_the_lower_right_corner(height: int, width: int) -> None:
    """As SmolVLA was trained: black above, or to the left."""
    out, raw = _out(40, 60), _bgr(_RED, height, width)
    decode_raw(raw.tobytes(), 'bgr8', height, width, 3 * width, False, out, 'lower_right')
    again = _out(40, 60)
    decode_compressed(_file(raw, '.png'), 'png', again, 'lower_right')
    kept = out[20:] if width == 60 else out[:, 40:]
    _near(kept, _RED)
    assert out.sum() == kept.sum()
    np.testing.assert_array_equal(again, out)


@pytest.mark.parametrize(
    'encoding', ['bayer_rggb8', 'rgb16', 'mono16', '16UC1', '32FC1', '8UC3', 'yuv422', 'RGB8', '']
)
def test_other_raw_encodings_are_refused_with_the_allowed_ones(encoding: str) -> None:
    """TR-07: Bayer and unknown encodings; 8UC3 does not say which end is red."""
    with pytest.raises(ImageError, match=f"encoding is '{encoding}'; allowed are rgb8, bgr8") as e:
        decode_raw(bytes(7200), encoding, 40, 60, 180, False, _out())
    assert e.value.reason is Reason.REJECTED_IMAGE


@pytest.mark.parametrize(
    ('height', 'width', 'step', 'size', 'text'),
    [
        (40, 60, 180, 7199, '7199 bytes'),
        (40, 60, 180, 7201, '7201 bytes'),
        (40, 60, 180, 0, 'has 0 bytes'),
        (40, 60, 179, 7160, 'need 180'),
        (0, 60, 180, 0, '0x60'),
        (40, 0, 0, 0, '40x0'),
        (5000, 1, 3, 15000, '5000x1'),
    ],
)
def test_raw_sizes_that_do_not_fit_are_refused(
    height: int, width: int, step: int, size: int, text: str
) -> None:
    """TR-07: wrong sizes."""
    with pytest.raises(ImageError, match=text):
        decode_raw(bytes(size), 'rgb8', height, width, step, False, _out())


@pytest.mark.parametrize(
    'text',
    [
        '',
        'tiff',
        'bayer_rggb8; jpeg compressed ',
        '16UC1; compressedDepth png',
        '16UC1; png compressed ',
        'rgb8; jpeg compressed rgb16',
        'rgb8',
        'jpeg' + ' ' * 1000,
    ],
)
def test_other_formats_are_refused_with_the_allowed_ones(text: str) -> None:
    """TR-07: unknown formats, Bayer behind a JPEG."""
    with pytest.raises(ImageError, match="allowed are 'jpeg', 'png'"):
        decode_compressed(_file(_bgr(_RED), '.jpg'), text, _out())


def test_format_and_data_must_agree() -> None:
    with pytest.raises(ImageError, match='says png, the data are a jpeg'):
        decode_compressed(_file(_bgr(_RED), '.jpg'), 'png', _out())


@pytest.mark.parametrize('suffix', ['.jpg', '.png'])
@pytest.mark.parametrize('part', [0.0, 0.002, 0.3, 0.9, 0.9999])
def test_truncated_files_are_refused(suffix: str, part: float) -> None:
    """TR-07: empty and truncated data, which libjpeg would fill with grey."""
    data = _file(_texture(), suffix)
    cut = data[: int(len(data) * part)]
    with pytest.raises(ImageError, match=r'empty|truncated|neither'):
        decode_compressed(cut, suffix[1:], _out())


@pytest.mark.parametrize('suffix', ['.jpg', '.png'])
def test_overwritten_files_are_refused(suffix: str) -> None:
    """TR-07: corrupt data."""
    data = bytearray(_file(_texture(), suffix))
    middle = len(data) // 2
    data[middle : middle + 16] = b'\xff\x42' * 8
    with pytest.raises(ImageError, match='corrupt'):
        decode_compressed(bytes(data), suffix[1:], _out())


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = struct.pack('>I', zlib.crc32(kind + body))
    return struct.pack('>I', len(body)) + kind + body + check


def _png(height: int, width: int, packed: bytes, bits: int = 8) -> bytes:
    head = struct.pack('>IIBBBBB', width, height, bits, 2, 0, 0, 0)
    chunks = (_chunk(b'IHDR', head), _chunk(b'IDAT', packed), _chunk(b'IEND', b''))
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunks)


@pytest.mark.parametrize(
    ('data', 'text'),
    [
        (_png(60000, 60000, b''), '60000x60000'),
        (_png(4096, 4096, zlib.compress(bytes(1000))), 'can not hold them'),
        (_png(40, 60, zlib.compress(bytes(40 * 181)), bits=16), '16 bits'),
        (_png(40, 60, b'no deflate stream' * 20), 'can not be decoded'),
        (_png(40, 60, zlib.compress(b'\x09' * 40 * 181)), 'can not be decoded'),
        (b'GIF89a' + bytes(100), 'neither'),
    ],
)
def test_hostile_png_is_refused(data: bytes, text: str) -> None:
    """TR-07: bombs are found by their header, before anything is decoded."""
    with pytest.raises(ImageError, match=text):
        decode_compressed(data, 'png', _out())


@pytest.mark.parametrize(
    ('size', 'text'), [((65535, 65535), '65535x65535'), ((4000, 4000), 'can not hold them')]
)
def test_jpeg_that_declares_too_much_is_refused(size: tuple[int, int], text: str) -> None:
    """TR-07: a small file with a huge declared size is not decoded."""
    data = _file(_bgr(_RED), '.jpg')
    place = data.index(b'\xff\xc0') + 5
    with pytest.raises(ImageError, match=text):
        decode_compressed(
            data[:place] + struct.pack('>HH', *size) + data[place + 4 :], 'jpeg', _out()
        )


def test_sixteen_bit_png_is_refused() -> None:
    data = cv2.imencode('.png', np.zeros((40, 60), np.uint16))[1].tobytes()
    with pytest.raises(ImageError, match='16 bits'):
        decode_compressed(data, 'png', _out())


_STARTS = (b'', b'\xff\xd8', b'\x89PNG\r\n\x1a\n', _file(_bgr(_RED, 8, 8), '.jpg')[:-40])


@given(start=st.sampled_from(_STARTS), data=st.binary(max_size=300), png=st.booleans())
def test_random_files_raise_nothing_but_image_errors(start: bytes, data: bytes, png: bool) -> None:
    with suppress(ImageError):
        decode_compressed(start + data, 'png' if png else 'jpeg', _out())


@given(
    position=st.integers(0, 10**6),
    value=st.integers(0, 255),
    suffix=st.sampled_from(['.jpg', '.png']),
)
def test_files_with_one_wrong_byte_raise_nothing_but_image_errors(
    position: int, value: int, suffix: str
) -> None:
    data = bytearray(_file(_texture(16, 16), suffix))
    data[position % len(data)] = value
    with suppress(ImageError):
        decode_compressed(bytes(data), suffix[1:], _out())


@settings(max_examples=50)
@given(
    data=st.binary(max_size=200),
    encoding=st.one_of(st.sampled_from(['rgb8', 'mono8', 'bgra8']), st.text(max_size=9)),
    sizes=st.tuples(*[st.one_of(st.integers(0, 12), st.integers(0, 2**32 - 1))] * 3),
)
def test_random_raw_pictures_raise_nothing_but_image_errors(
    data: bytes, encoding: str, sizes: tuple[int, int, int]
) -> None:
    with suppress(ImageError):
        decode_raw(data, encoding, *sizes, False, _out())
