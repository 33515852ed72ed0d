# SPDX-License-Identifier: Apache-2.0
"""The entries of a calibration file, each checked and refused by its name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.rate_table import Counts, Demands, Rates
from xinfer_ros.setting import nearest

FORMAT = 2
REQUIRED = frozenset({
    'format', 'name', 'device', 'model', 'source', 'work_ms', 'overhead_ms', 'output_ms',
    'front_end_ms', 'reserved_ms',
})  # fmt: skip
KNOWN = REQUIRED | {
    'model_facts', 'torch', 'date', 'batch_work', 'infer_ms', 'fit_error', 'rates', 'demands',
}  # fmt: skip
ByStage = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitError:
    """
    How far the times that a calibration predicts are from measured ones that it was not made of.

    Relative to the measured time, over every stage of every combination of running units.

    :param median: half of them are nearer
    :param largest: none is further off
    """

    median: float
    largest: float

    def __post_init__(self) -> None:
        """Check the numbers; raises ConfigError."""
        if not 0.0 <= self.median <= self.largest <= 100.0:
            raise ConfigError(
                f'fit_error is {self.median} and {self.largest}; '
                '0 <= median <= largest <= 100 is needed'
            )


def entries_of(values: Any) -> dict[str, Any]:
    """
    Return the arguments of a calibration that a JSON value holds.

    :raises ConfigError: with the entry that is missing, unknown or wrong
    """
    if not isinstance(values, dict) or 'format' not in values:
        raise ConfigError(f'an object with "format": {FORMAT} is needed')
    if values['format'] != FORMAT:
        raise ConfigError(
            f'the file has "format": {values["format"]}, this version reads {FORMAT}; '
            'measure anew with xinfer calibrate'
        )
    for wrong in sorted(set(values) - KNOWN):
        raise ConfigError(f'unknown entry {wrong}; {nearest(wrong, sorted(KNOWN))}')
    if missing := sorted(REQUIRED - set(values)):
        raise ConfigError(f'{", ".join(missing)} is missing')
    if ('rates' in values) == ('demands' in values):
        raise ConfigError('either rates or demands is needed')
    batch, infer = values.get('batch_work', [[1.0], [1.0], [1.0]]), values.get('infer_ms')
    if not isinstance(batch, list) or len(batch) != len(Stage):
        raise ConfigError(f'batch_work is {batch}; a list for each of the three stages is needed')
    return dict(
        name=_text_of(values, 'name'),
        device=_text_of(values, 'device'),
        model=_text_of(values, 'model'),
        model_facts=_text_of(values, 'model_facts'),
        source=_text_of(values, 'source'),
        torch=_text_of(values, 'torch'),
        date=_text_of(values, 'date'),
        work_ms=_by_stage_of(values['work_ms'], 'work_ms'),
        overhead_ms=_by_stage_of(values['overhead_ms'], 'overhead_ms'),
        output_ms=_numbers_of(values['output_ms'], 'output_ms', ()),
        front_end_ms=_numbers_of(values['front_end_ms'], 'front_end_ms', ()),
        reserved_ms=_numbers_of(values['reserved_ms'], 'reserved_ms', ()),
        rates=_rates_of(values),
        batch_work=tuple(tuple(_numbers_of(row, 'batch_work', (-1,))) for row in batch),
        infer_ms=() if infer is None else tuple(_numbers_of(infer, 'infer_ms', (-1,))),
        fit_error=_fit_error(values.get('fit_error')),
    )


def _fit_error(value: Any) -> FitError | None:
    if value is None:
        return None
    names = sorted(entry.name for entry in fields(FitError))
    if not isinstance(value, dict) or sorted(value) != names:
        raise ConfigError(f'fit_error is {value}; null or an object with {", ".join(names)}')
    return FitError(**{name: _numbers_of(value[name], 'fit_error', ()) for name in names})


def _text_of(values: Mapping[str, Any], name: str) -> str:
    """Return a text, empty if there is none."""
    value = values.get(name, '')
    if not isinstance(value, str):
        raise ConfigError(f'{name} is {value}; text is needed')
    return value


def _rates_of(values: Mapping[str, Any]) -> Rates:
    """Return the rate table of the entry ``rates``, or made by that of ``demands``."""
    if 'rates' in values:
        return np.array(_numbers_of(values['rates'], 'rates', (-1, -1, -1, -1)))
    demands, names = values['demands'], sorted(entry.name for entry in fields(Demands))
    if not isinstance(demands, dict):
        raise ConfigError(f'demands is {demands}; an object with {", ".join(names)} is needed')
    for wrong in sorted(set(demands) - set(names)):
        raise ConfigError(f'demands has an unknown entry {wrong}; {nearest(wrong, names)}')
    if missing := [name for name in ('bound', 'demand', 'sharpness') if name not in demands]:
        raise ConfigError(f'demands lacks {", ".join(missing)}')
    made = Demands(
        bound=_counts(demands['bound']),
        demand=_by_stage_of(demands['demand'], 'demand'),
        sharpness=_numbers_of(demands['sharpness'], 'sharpness', ()),
        contention=_numbers_of(demands.get('contention', 0.0), 'contention', ()),
        same_stage_contention=_numbers_of(
            demands.get('same_stage_contention', 0.0), 'same_stage_contention', ()
        ),
        exponent=_by_stage_of(demands.get('exponent', [1.0, 1.0, 1.0]), 'exponent'),
    )
    with np.errstate(all='ignore'):  # the table refuses what is not a number
        return made.rates()


def _numbers_of(value: Any, name: str, shape: tuple[int, ...]) -> Any:
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
        shown = str(value) if len(str(value)) < 60 else f'{str(value)[:57]}...'
        raise ConfigError(
            f'{name} is {shown}; {kind.get(shape, "nested lists of numbers")} needed'
        )
    return array.tolist()


def _by_stage_of(value: Any, name: str) -> ByStage:
    """Return a number for each stage."""
    vit, prefill, action = _numbers_of(value, name, (3,))
    return vit, prefill, action


def _counts(value: Any) -> Counts:
    given = _by_stage_of(value, 'bound')
    if not all(number == int(number) and 1 <= number <= 16 for number in given):
        raise ConfigError(f'bound is {value}; three whole numbers from 1 to 16 are needed')
    vit, prefill, action = (int(number) for number in given)
    return vit, prefill, action
