# SPDX-License-Identifier: Apache-2.0
"""A device on which times can be worked out by hand."""

import numpy as np

from xinfer_ros.predict.calibration import Calibration

ALONE: tuple[tuple[float, ...], ...] = ((1.0,), (1.0,), (1.0,))


def sharing_device(batch_work: tuple[tuple[float, ...], ...] = ALONE) -> Calibration:
    """Return a device where ``rho(n) = 1 / (1 + sum(n))``: it goes round, each takes its part."""
    return Calibration(
        name='sharing',
        device='none',
        model='none',
        source='made up',
        work_ms=(4.0, 8.0, 12.0),
        overhead_ms=(2.0, 1.0, 1.0),
        output_ms=3.0,
        front_end_ms=6.0,
        reserved_ms=4.0,
        rates=np.ones((3, 3, 3, 3)) / (1.0 + np.indices((3, 3, 3)).sum(axis=0)),
        batch_work=batch_work,
    )
