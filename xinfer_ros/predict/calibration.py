# SPDX-License-Identifier: Apache-2.0
"""The calibration of one device and model: stage times, rate table, and where they come from."""

import json
from dataclasses import asdict, dataclass, field, fields
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration_entries import FORMAT, ByStage, FitError, entries_of
from xinfer_ros.predict.identity import Identity, remedy
from xinfer_ros.predict.rate_table import Counts, Rates, RateTable

_SUFFIX = '_device.json'
MAX_BATCH = 8
MIN_WORK_MS, MAX_MS = 1e-4, 10_000.0
_STAGE_TIMES = ('work_ms', 'overhead_ms')
_TIMES = ('output_ms', 'front_end_ms', 'reserved_ms')


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """
    What is known of one device that runs one model. Times in ms.

    :param name: a short name, for tables and error texts
    :param device: the device that was measured, see ``Identity``
    :param model: name of the model
    :param model_facts: what else of the model decides about its times; empty if not recorded
    :param source: how the numbers came about
    :param torch: version of torch, empty if not recorded
    :param date: day of the measurement, as 2026-01-31, empty if not recorded
    :param work_ms: ``W_s``, work of one unit alone
    :param overhead_ms: ``h_s``, launch overhead of one unit
    :param output_ms: ``h_out``, from the end of Action until the answer leaves
    :param front_end_ms: ``f``, from the arrival of an observation until it is registered
    :param reserved_ms: ``delta``, kept of each budget for what happens outside of the server
    :param rates: ``rho_s(n)``, shape ``(3, cV + 1, cP + 1, cA + 1)``
    :param batch_work: work of a batch of 1, 2, ... requests over that of one, of each stage
    :param infer_ms: ``d_infer(|B|)``, all stages of a batch of 1, 2, ... requests one after the
        other on an idle device; empty if not measured
    :param fit_error: how good the fit was; None if not measured
    """

    name: str
    device: str
    model: str
    model_facts: str = ''
    source: str
    torch: str = ''
    date: str = ''
    work_ms: ByStage
    overhead_ms: ByStage
    output_ms: float
    front_end_ms: float
    reserved_ms: float
    rates: Rates
    batch_work: tuple[tuple[float, ...], ...] = ((1.0,), (1.0,), (1.0,))
    infer_ms: tuple[float, ...] = ()
    fit_error: FitError | None = None
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
        if len(self.infer_ms) > MAX_BATCH or not all(0 < ms <= 1e5 for ms in self.infer_ms):
            raise ConfigError(
                f'infer_ms is {list(self.infer_ms)}; '
                f'up to {MAX_BATCH} numbers above 0 ms are needed'
            )
        object.__setattr__(self, 'table', RateTable(self.rates))

    def check(self, identity: Identity) -> None:
        """
        Refuse another model or device than the one measured.

        :param identity: what is to be served
        :raises ConfigError: with both, and the remedy
        """
        measured = Identity(
            setting=identity.setting,
            model=self.model,
            model_facts=self.model_facts or identity.model_facts,
            device=self.device,
        )
        if measured == identity:
            return
        with_facts = measured.model_facts != identity.model_facts
        raise ConfigError(
            f'calibration {self.name} is of {measured.words(with_facts)}; '
            f'this is {identity.words(with_facts)}: {remedy(identity.setting)}, or let the server '
            'go on with it, and learn what differs, by calibration_mismatch: warn'
        )

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
        return min(self._per_ms(stage, 1) for stage in Stage)

    @property
    def batched_per_ms(self) -> float:
        """Return the responses per ms with every lane full of its most efficient batches."""
        return min(
            max(self._per_ms(stage, size) for size in range(1, len(batch) + 1))
            for stage, batch in zip(Stage, self.batch_work, strict=True)
        )

    def _per_ms(self, stage: Stage, size: int) -> float:
        slow = 1.0 / self.table.rate_without(stage, self.bound)
        work_ms = self.work_ms[stage] * self.batch_work[stage][size - 1]
        return self.bound[stage] * size / (self.overhead_ms[stage] + work_ms * slow)

    def inference_ms(self, size: int) -> float:
        """
        Return ``d_infer(|B|)`` of a batch, all stages one after the other on an idle device [ms].

        As measured; what was not measured follows from the stage times.

        :param size: requests in the batch; a stage whose largest batch is smaller takes several
        """
        if size <= len(self.infer_ms):
            return self.infer_ms[size - 1]
        total = 0.0
        for stage, batch in zip(Stage, self.batch_work, strict=True):
            full, rest = divmod(size, len(batch))
            works = [batch[-1]] * full + ([batch[rest - 1]] if rest else [])
            total += sum(self.overhead_ms[stage] + self.work_ms[stage] * w for w in works)
        return total


def shipped_names() -> tuple[str, ...]:
    """Return the names of the calibrations that ship."""
    folder = resources.files('xinfer_ros.predict') / 'data'
    files = (file.name for file in folder.iterdir())
    return tuple(sorted(name[: -len(_SUFFIX)] for name in files if name.endswith(_SUFFIX)))


def load_calibration(name: str) -> Calibration:
    """
    Return a calibration: one that ships (its name), or that of a file (its path).

    :raises ConfigError: if there is none, or the file is not a calibration
    """
    path = Path(name)
    if path.suffix != '.json':
        if name not in shipped_names():
            raise ConfigError(
                f'no calibration {name}; shipped: {", ".join(shipped_names())}; '
                'or give a .json file'
            )
        shipped = resources.files('xinfer_ros.predict') / 'data' / f'{name}{_SUFFIX}'
        return parse_calibration(shipped.read_text(), name)
    try:
        return parse_calibration(path.read_text(), name)
    except OSError as error:
        raise ConfigError(f'calibration {name} cannot be read: {error.strerror}') from error


def save_calibration(calibration: Calibration, path: Path) -> None:
    """
    Write a calibration to a file that ``load_calibration`` reads.

    :raises ConfigError: if the file cannot be written
    """
    try:
        path.write_text(calibration_text(calibration))
    except OSError as error:
        raise ConfigError(f'{path} cannot be written: {error.strerror}') from error


def calibration_text(calibration: Calibration) -> str:
    """Return a calibration as JSON, one entry a line."""
    values: dict[str, Any] = {'format': FORMAT}
    values |= {
        entry.name: getattr(calibration, entry.name)
        for entry in fields(Calibration)
        if entry.init and entry.name not in ('rates', 'fit_error')
    }
    values['infer_ms'] = calibration.infer_ms or None
    error = calibration.fit_error
    values['fit_error'] = None if error is None else asdict(error)
    values['rates'] = np.round(calibration.rates, 6).tolist()
    lines = (f' {json.dumps(key)}: {json.dumps(value)}' for key, value in values.items())
    return '{\n' + ',\n'.join(lines) + '\n}\n'


def parse_calibration(text: str, name: str) -> Calibration:
    """
    Return the calibration that a text holds.

    :param name: of the file, for error texts
    :raises ConfigError: if it is not a calibration
    """
    try:
        return Calibration(**entries_of(json.loads(text)))
    except ConfigError as error:
        raise ConfigError(f'calibration {name}: {error}') from error
    except ValueError as error:
        raise ConfigError(f'calibration {name} is not JSON: {error}') from error
