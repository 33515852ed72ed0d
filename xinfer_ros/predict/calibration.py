# SPDX-License-Identifier: Apache-2.0
"""The calibration of one device and model: stage times, rate table, and where they come from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from xinfer_ros.config import nearest
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.rate_table import Counts, Demands, Rates, RateTable

FORMAT = 1
MAX_BATCH = 8
MIN_WORK_MS, MAX_MS = 1e-4, 10_000.0
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
            least = MIN_WORK_MS if name == 'work_ms' else 0.0
            if not all(least <= value <= MAX_MS for value in getattr(self, name)):
                raise ConfigError(
                    f'{name} is {list(getattr(self, name))}; {least:g} to {MAX_MS:g} ms is allowed'
                )
        for name in _TIMES:
            if not 0.0 <= getattr(self, name) <= MAX_MS:
                raise ConfigError(
                    f'{name} is {getattr(self, name)}; 0 to {MAX_MS:g} ms is allowed'
                )
        for stage, batch in zip(Stage, self.batch_work, strict=True):
            rising = all(a <= b <= 100.0 for a, b in pairwise(batch))
            if not (1 <= len(batch) <= MAX_BATCH and batch[0] == 1.0 and rising):
                raise ConfigError(
                    f'batch_work of {stage.name} is {list(batch)}; '
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


def _parsed(values: Any, name: str) -> Calibration:
    known = {'format', *_TEXTS, *_STAGE_TIMES, *_TIMES, 'batch_work', 'rates', 'demands'}
    required = {'format', *_TEXTS, *_STAGE_TIMES, *_TIMES}
    try:
        if not isinstance(values, dict) or values.get('format') != FORMAT:
            raise ConfigError(f'an object with "format": {FORMAT} is needed')
        for wrong in sorted(set(values) - known):
            raise ConfigError(f'unknown entry {wrong}; {nearest(wrong, sorted(known))}')
        if missing := sorted(required - set(values)):
            raise ConfigError(f'{", ".join(missing)} is missing')
        if ('rates' in values) == ('demands' in values):
            raise ConfigError('either rates or demands is needed')
        scalars: dict[str, Any] = {text: str(values[text]) for text in _TEXTS}
        scalars |= {time: _numbers(values[time], time, ()) for time in _TIMES}
        batch = values.get('batch_work', [[1.0], [1.0], [1.0]])
        if not isinstance(batch, list) or len(batch) != len(Stage):
            raise ConfigError(
                f'batch_work is {batch}; a list for each of the three stages is needed'
            )
        return Calibration(
            **scalars,
            work_ms=_by_stage(values['work_ms'], 'work_ms'),
            overhead_ms=_by_stage(values['overhead_ms'], 'overhead_ms'),
            rates=_rates(values),
            batch_work=tuple(tuple(_numbers(row, 'batch_work', (-1,))) for row in batch),
        )
    except ConfigError as error:
        raise ConfigError(f'calibration {name}: {error}') from error


def _rates(values: Mapping[str, Any]) -> Rates:
    if 'rates' in values:
        return np.array(_numbers(values['rates'], 'rates', (-1, -1, -1, -1)))
    demands, names = values['demands'], sorted(field.name for field in fields(Demands))
    if not isinstance(demands, dict):
        raise ConfigError(f'demands is {demands}; an object with {", ".join(names)} is needed')
    for wrong in sorted(set(demands) - set(names)):
        raise ConfigError(f'demands has an unknown entry {wrong}; {nearest(wrong, names)}')
    if missing := [name for name in ('bound', 'demand', 'sharpness') if name not in demands]:
        raise ConfigError(f'demands lacks {", ".join(missing)}')
    made = Demands(
        bound=_counts(demands['bound']),
        demand=_by_stage(demands['demand'], 'demand'),
        sharpness=_numbers(demands['sharpness'], 'sharpness', ()),
        contention=_numbers(demands.get('contention', 0.0), 'contention', ()),
        same_stage_contention=_numbers(
            demands.get('same_stage_contention', 0.0), 'same_stage_contention', ()
        ),
        exponent=_by_stage(demands.get('exponent', [1.0, 1.0, 1.0]), 'exponent'),
    )
    with np.errstate(all='ignore'):  # the table refuses what is not a number
        return made.rates()


def _numbers(value: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return finite numbers of a shape, -1 for any length, as (nested) lists; or say what is."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    fits = array.ndim == len(shape) and all(
        want in (-1, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if isinstance(value, str) or not fits or not np.isfinite(array).all():
        kind = {(): 'one number', (3,): 'three numbers', (-1,): 'a list of numbers'}
        text = str(value) if len(str(value)) < 60 else f'{str(value)[:57]}...'
        raise ConfigError(f'{name} is {text}; {kind.get(shape, "nested lists of numbers")} needed')
    return array.tolist()


def _by_stage(value: Any, name: str) -> ByStage:
    vit, prefill, action = _numbers(value, name, (3,))
    return vit, prefill, action


def _counts(value: Any) -> Counts:
    numbers = _by_stage(value, 'bound')
    if not all(number == int(number) and 1 <= number <= 16 for number in numbers):
        raise ConfigError(f'bound is {value}; three whole numbers from 1 to 16 are needed')
    vit, prefill, action = (int(number) for number in numbers)
    return vit, prefill, action
