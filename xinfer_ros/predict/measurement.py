# SPDX-License-Identifier: Apache-2.0
"""What was measured of a device: the times of units in many short runs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.rate_table import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """
    Times of the units of one stage in one run.

    :param whole_ms: of each from its issue until its end is seen, shape ``(n,)`` [ms]
    :param inner_ms: of each from when its lane began it until it was complete, ``(n,)`` [ms]
    """

    whole_ms: npt.NDArray[np.float64]
    inner_ms: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortRun:
    """
    Units kept in flight side by side for a short time; one that ends is followed by another.

    :param counts: units of each stage at once
    :param batch: requests in each unit
    :param spans: of each stage that took part, empty for one of which no unit has ended
    """

    counts: Counts
    batch: int
    spans: Mapping[Stage, Spans]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """
    A batch taken through all stages on an idle device.

    :param size: its requests
    :param ms: from the issue of its first unit until the end of its last is seen [ms]
    """

    size: int
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """
    Everything that was measured of the lanes.

    :param stages: stages of the model
    :param workers: largest number of units at once of each stage, 1 for a stage that is missing
    :param batches: largest batch of each stage, likewise
    :param runs: in the order in which they were made
    :param passages: likewise
    """

    stages: tuple[Stage, ...]
    workers: Counts
    batches: Counts
    runs: tuple[ShortRun, ...]
    passages: tuple[Passage, ...]
