# SPDX-License-Identifier: Apache-2.0
"""The calibration of one device and model: stage times, rate table, and where they come from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.rate_table import Counts, Demands, Rates, RateTable

FORMAT = 1
MAX_BATCH = 8
ByStage = tuple[float, float, float]
_TEXTS = ('name', 'device', 'model', 'source')
_STAGE_TIMES = ('work_ms', 'overhead_ms')
_TIMES = ('output_ms', 'front_end_ms', 'reserved_ms')


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """
    What is known of one device that runs one model. Times in ms.

    :param work_ms: ``W_s``, work of one unit alone
    :param overhead_ms: ``h_s``, launch overhead of one unit
    :param output_ms: ``h_out``, from the end of Action until the answer leaves
    :param front_end_ms: ``f``, from the arrival of an observation until it is registered
    :param reserved_ms: ``delta``, kept of each budget for what happens outside of the server
    :param rates: ``rho_s(n)``, shape ``(3, cV + 1, cP + 1, cA + 1)``
    :param batch_work: work of a batch of 1, 2, ... requests over that of one, of each stage
    """

    name: str
    device: str
    model: str
    source: str
    work_ms: ByStage
    overhead_ms: ByStage
    output_ms: float
    front_end_ms: float
    reserved_ms: float
    rates: Rates
    batch_work: tuple[tuple[float, ...], ...] = ((1.0,), (1.0,), (1.0,))
    table: RateTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the numbers; raises ConfigError."""
        for name in _STAGE_TIMES:
            if min(getattr(self, name)) < 0.0 or len(getattr(self, name)) != len(Stage):
                raise ConfigError(
                    f'{name} of calibration {self.name}: three times >= 0 are needed'
                )
        if min(self.work_ms) <= 0.0:
            raise ConfigError(f'work_ms of calibration {self.name}: each must be more than 0')
        for name in _TIMES:
            if not 0.0 <= getattr(self, name) < 1e6:
                raise ConfigError(f'{name} of calibration {self.name}: {getattr(self, name)}')
        for stage, batch in zip(Stage, self.batch_work, strict=True):
            good = (
                1 <= len(batch) <= MAX_BATCH and batch[0] == 1.0 and list(batch) == sorted(batch)
            )
            if not good:
                raise ConfigError(
                    f'batch_work of {stage.name} in calibration {self.name}: {list(batch)}; '
                    f'1 to {MAX_BATCH} rising numbers are needed, the first of them 1'
                )
        object.__setattr__(self, 'table', RateTable(self.rates))

    @property
    def bound(self) -> Counts:
        """Return ``c``, the units of each stage that the table knows."""
        return self.table.bound

    @property
    def alone_ms(self) -> float:
        """Return the time of one request that has the device for itself, to its output [ms]."""
        return sum(self.work_ms) + sum(self.overhead_ms) + self.output_ms

    @property
    def saturated_per_ms(self) -> float:
        """Return the responses per ms with every lane full, batch size one."""
        rates = []
        for stage in Stage:
            slow = 1.0 / self.table.rate_without(stage, self.bound)
            rates.append(
                self.bound[stage] / (self.overhead_ms[stage] + self.work_ms[stage] * slow)
            )
        return min(rates)


def load_calibration(name: str) -> Calibration:
    """
    Return a calibration: one that ships (its name), or that of a file (its path).

    :raises ConfigError: if there is none, or the file is not a calibration
    """
    path = Path(name)
    if path.suffix != '.json':
        shipped = resources.files('xinfer_ros.predict') / 'data' / f'{name}_device.json'
        if not shipped.is_file():
            folder = resources.files('xinfer_ros.predict') / 'data'
            known = sorted(f.name[: -len('_device.json')] for f in folder.iterdir())
            raise ConfigError(
                f'no calibration {name}; shipped: {", ".join(known)}; or give a .json file'
            )
        return _parsed(json.loads(shipped.read_text()), name)
    try:
        return _parsed(json.loads(path.read_text()), name)
    except OSError as error:
        raise ConfigError(f'calibration {name} cannot be read: {error.strerror}') from error
    except ValueError as error:
        raise ConfigError(f'calibration {name} is not JSON: {error}') from error


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write a calibration to a file that ``load_calibration`` reads."""
    values: dict[str, Any] = {'format': FORMAT}
    values |= {name: getattr(calibration, name) for name in (*_TEXTS, *_STAGE_TIMES, *_TIMES)}
    values['batch_work'] = calibration.batch_work
    values['rates'] = np.round(calibration.rates, 6).tolist()
    path.write_text(json.dumps(values, indent=1) + '\n')


def _parsed(values: Mapping[str, Any], name: str) -> Calibration:
    known = {'format', *_TEXTS, *_STAGE_TIMES, *_TIMES, 'batch_work', 'rates', 'demands'}
    required = {'format', *_TEXTS, *_STAGE_TIMES, *_TIMES}
    if not isinstance(values, dict) or values.get('format') != FORMAT:
        raise ConfigError(f'calibration {name} is not of format {FORMAT}')
    if wrong := sorted(set(values) - known):
        raise ConfigError(f'calibration {name} has an unknown entry {wrong[0]}')
    if missing := sorted(required - set(values)):
        raise ConfigError(f'calibration {name} lacks {", ".join(missing)}')
    if ('rates' in values) == ('demands' in values):
        raise ConfigError(f'calibration {name} needs either rates or demands')
    try:
        if 'rates' in values:
            rates = np.array(values['rates'], dtype=np.float64)
        else:
            demands: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in values['demands'].items()
            }
            rates = Demands(**demands).rates()
        batch = values.get('batch_work', [[1.0], [1.0], [1.0]])
        scalars: dict[str, Any] = {text: str(values[text]) for text in _TEXTS}
        scalars |= {time: float(values[time]) for time in _TIMES}
        return Calibration(
            **scalars,
            work_ms=_by_stage(values['work_ms']),
            overhead_ms=_by_stage(values['overhead_ms']),
            rates=rates,
            batch_work=tuple(tuple(float(x) for x in row) for row in batch),
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f'calibration {name}: {error}') from error


def _by_stage(values: Any) -> ByStage:
    vit, prefill, action = (float(value) for value in values)
    return vit, prefill, action
