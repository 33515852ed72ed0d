# SPDX-License-Identifier: Apache-2.0
"""Requests and devices for the tests of the scheduler."""

import numpy as np

from xinfer_ros.core.request import Request
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Counts

MS = 1_000_000


def request(key: int, arrival_ns: int = 0, budget_ns: int = 180 * MS, robot: int = -1) -> Request:
    """Return a request; robot and slot follow from its key unless told otherwise."""
    return Request(
        key=key,
        robot=robot if robot >= 0 else key,
        slot=key,
        arrival_ns=arrival_ns,
        budget_ns=budget_ns,
        reserved_ns=4 * MS,
        period_ns=180 * MS,
    )


def device(bound: Counts = (1, 1, 1), max_batch: int = 1) -> Calibration:
    """
    Return a device whose stages take 2, 3 and 4 ms and slow each other down by a tenth.

    :param bound: units at once of each stage
    :param max_batch: requests of one unit
    """
    vit, prefill, action = np.ogrid[: bound[0] + 1, : bound[1] + 1, : bound[2] + 1]
    rates = np.broadcast_to(1.0 / (1.0 + 0.1 * (vit + prefill + action)), (3, *map(_more, bound)))
    batch = tuple(1.0 + 0.2 * extra for extra in range(max_batch))
    return Calibration(
        name='test',
        device='none',
        model='none',
        source='made up',
        work_ms=(2.0, 3.0, 4.0),
        overhead_ms=(0.1, 0.1, 0.1),
        output_ms=0.5,
        front_end_ms=1.0,
        reserved_ms=4.0,
        rates=np.array(rates),
        batch_work=(batch, batch, batch),
    )


def _more(units: int) -> int:
    return units + 1
