# SPDX-License-Identifier: Apache-2.0
"""What a round or a search came to, as flat records that are written to a file."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """
    One round, simulated or live; the shares and rates are those of ``sim.metrics.RoundMetrics``.

    :param round: number of the round, from 1
    :param seed: of everything that was drawn for it
    :param mae_ms: mean absolute error of predicted stage times, None if it was not audited [ms]
    :param real_time_factor: simulated seconds per second of computing
    """

    policy: str
    workload: str
    robots: int
    round: int
    seed: int
    calibration: str
    attainment: float
    goodput: float
    wide_mean_ms: float
    p50_ms: float
    p99_ms: float
    min_rate_hz: float
    mae_ms: float | None
    tight_attainment: float
    least_class_attainment: float
    tight_p999_ms: float
    far_late: float
    min_rate_share: float
    mean_rate_hz: float
    responses: int
    real_time_factor: float
    starvation: float
    fairness: float
    fast_starvation: float | None
    slow_starvation: float | None
    steps_per_device_s: float | None
    mirror_error_steps: float | None
    errors: int = 0
    error_reasons: str = ''


@dataclass(frozen=True, slots=True, kw_only=True)
class ErcRecord:
    """
    The effective robot capacity that a search has found, and what the fleet of that size saw.

    Shares are the least of all rounds, the late share and the quantile the most. They are None
    if no population passes.

    :param erc: the largest population that passes with every smaller tested one, 0 for none
    :param first_failing: the least population that fails, None if none did up to the limit
    :param passing: populations tested that pass
    :param failing: populations tested that fail
    :param faults: what the least of those misses, in words
    """

    policy: str
    workload: str
    criterion: str
    erc: int
    first_failing: int | None
    rounds: int
    calibration: str
    attainment: float | None
    tight_attainment: float | None
    tight_p999_ms: float | None
    far_late: float | None
    min_rate_hz: float | None
    min_rate_share: float | None
    mean_rate_hz: float | None
    passing: tuple[int, ...]
    failing: tuple[int, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCostRecord:
    """
    What one pass of a scheduling policy costs, over every pass with a request waiting.

    :param calls: passes that were timed in one replay
    :param period_ms: ``TE`` of the fleet that was recorded [ms]
    """

    implementation: str
    policy: str
    robots: int
    p50_us: float
    p99_us: float
    calls: int
    repeats: int
    period_ms: float


def output_file(path: Path, suffix: str) -> Path:
    """
    Return a path that can be written, checked before anything is computed.

    :raises ConfigError: if its folder does not exist or it has another suffix
    """
    if path.suffix != suffix:
        raise ConfigError(f'{path}: the name must end with {suffix}')
    if not path.parent.is_dir():
        raise ConfigError(f'{path}: there is no folder {path.parent}; make it first')
    if path.is_dir():
        raise ConfigError(f'{path} is a folder; name a file')
    return path


def output_files(json_file: Path | None, plot_file: Path | None) -> None:
    """
    Check the files that a command shall write, those that it was given.

    :raises ConfigError: as ``output_file``
    """
    for path, suffix in ((json_file, '.json'), (plot_file, '.png')):
        if path is not None:
            output_file(path, suffix)


def write_records(path: Path, records: 'Sequence[DataclassInstance]') -> None:
    """
    Write records as a JSON list of flat objects.

    :raises ConfigError: if the file cannot be written
    """
    _write(path, [_plain(record) for record in records])


def write_lists(path: Path, **lists: 'Sequence[DataclassInstance]') -> None:
    """
    Write several lists of records as a JSON object of lists.

    :raises ConfigError: if the file cannot be written
    """
    _write(path, {name: [_plain(each) for each in found] for name, found in lists.items()})


def _write(path: Path, values: object) -> None:
    try:
        path.write_text(json.dumps(values, indent=1) + '\n')
    except OSError as error:
        raise ConfigError(f'{path} cannot be written: {error.strerror}') from error


def _plain(record: 'DataclassInstance') -> dict[str, Any]:
    values = asdict(record)
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = round(value, 6) if math.isfinite(value) else None
    return values
