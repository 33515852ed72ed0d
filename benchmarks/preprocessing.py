# SPDX-License-Identifier: Apache-2.0
"""
Times the fitting of three uncompressed pictures into a model's size on one core, against 1 ms.

Run: ``.venv/bin/python benchmarks/preprocessing.py``. The difference is to the published
reference: bilinear in floats, without aligned corners, padded in the centre.
"""

import argparse
import statistics

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.models.images import decode_raw, fit_size

CAMERAS = 3
ALLOWED_MS = 1.0
SIZES = (  # of the robot's picture and of the model's [pixels]
    ((480, 640), (224, 224)),
    ((480, 640), (224, 320)),
    ((720, 1280), (224, 224)),
    ((480, 640), (196, 308)),
    ((224, 224), (224, 224)),
)
Pixels = npt.NDArray[np.uint8]


def pictures(height: int, width: int) -> list[Pixels]:
    """Return one picture a camera: smooth shapes with noise on them."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(CAMERAS):
        coarse = random.integers(0, 256, (9, 16, 3), dtype=np.uint8)
        smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(int)
        noisy = smooth + random.integers(-20, 21, smooth.shape)
        found.append(noisy.clip(0, 255).astype(np.uint8))
    return found


def reference(picture: Pixels, height: int, width: int) -> npt.NDArray[np.float32]:
    """Return a picture fitted as published code does it, ``(height, width, 3)`` grey levels."""
    inner = fit_size(*picture.shape[:2], height, width)
    floats = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
    scaled = functional.interpolate(floats, inner, mode='bilinear', align_corners=False)
    whole = torch.zeros(3, height, width)
    top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
    whole[:, top : top + inner[0], left : left + inner[1]] = scaled[0]
    return whole.permute(1, 2, 0).numpy()


def fit(sources: list[Pixels], targets: list[Pixels], encoding: str) -> None:
    """Fit one request's pictures."""
    for source, target in zip(sources, targets, strict=True):
        height, width, _ = source.shape
        decode_raw(source.reshape(-1), encoding, height, width, 3 * width, False, target)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--runs', type=int, default=300)
    runs: int = parser.parse_args().runs
    cv2.setNumThreads(1)
    clock = MonotonicClock()
    print(f'{CAMERAS} pictures, one core, lower quartile of {runs} runs, OpenCV {cv2.__version__}')
    for (height, width), (to_height, to_width) in SIZES:
        sources = pictures(height, width)
        targets = [np.empty((to_height, to_width, 3), np.uint8) for _ in sources]
        for encoding in ('rgb8', 'bgr8'):
            spans = []
            for _ in range(runs):
                start_ns = clock.now_ns()
                fit(sources, targets, encoding)
                spans.append((clock.now_ns() - start_ns) / 1e6)
            quick = statistics.quantiles(spans, n=4)[0]
            worst = max(
                np.abs(reference(source, to_height, to_width) - found[..., order]).max()
                for order in (slice(None) if encoding == 'rgb8' else slice(None, None, -1),)
                for source, found in zip(sources, targets, strict=True)
            )
            verdict = 'ok' if quick <= ALLOWED_MS else f'more than {ALLOWED_MS} ms'
            sizes = f'{height}x{width} {encoding} to {to_height}x{to_width}'
            print(f'{sizes}: {quick:.3f} ms ({verdict}), {worst:.2f} grey levels off at most')


if __name__ == '__main__':
    main()
