# SPDX-License-Identifier: Apache-2.0
"""The format of a calibration file, and how a wrong one is refused."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration, load_calibration, save_calibration
from xinfer_ros.predict.calibration_entries import FitError

from .devices import sharing_device


def _written(folder: Path, **changes: Any) -> str:
    """Write the shipped calibration with changes; None takes an entry out."""
    path = folder / 'saved.json'
    save_calibration(load_calibration('tiny'), path)
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))
    return str(path)


@pytest.mark.parametrize('name', ['paper', 'soft', 'sharp', 'tiny', 'echo'])
def test_shipped_calibration_is_read_and_survives_a_file(name: str, tmp_path: Path) -> None:
    _assert_survives(load_calibration(name), tmp_path / 'again.json')


def test_everything_that_a_measurement_tells_survives_a_file(tmp_path: Path) -> None:
    measured = replace(
        load_calibration('tiny'),
        model_facts='horizon 16, float32',
        torch='2.13.0',
        date='2026-01-31',
        batch_work=((1.0,), (1.0, 1.5), (1.0, 1.2, 1.4)),
        infer_ms=(15.0, 19.5, 24.25),
        fit_error=FitError(median=0.0125, largest=0.25),
    )
    _assert_survives(measured, tmp_path / 'again.json')


def _assert_survives(calibration: Calibration, path: Path) -> None:
    save_calibration(calibration, path)
    again = load_calibration(str(path))
    for entry in fields(Calibration):
        if entry.compare and entry.name != 'rates':
            assert getattr(again, entry.name) == getattr(calibration, entry.name), entry.name
    assert np.abs(again.rates - calibration.rates).max() < 1e-5


def test_file_has_an_entry_a_line(tmp_path: Path) -> None:
    save_calibration(load_calibration('paper'), tmp_path / 'saved.json')
    lines = (tmp_path / 'saved.json').read_text().splitlines()
    assert lines[1] == ' "format": 2,'
    assert ' "infer_ms": null,' in lines
    assert len(lines) == 2 + len(json.loads('\n'.join(lines)))


def test_file_that_cannot_be_written_is_told() -> None:
    with pytest.raises(ConfigError, match=r'/no/such/a\.json cannot be written'):
        save_calibration(load_calibration('tiny'), Path('/no/such/a.json'))


def test_whole_pipeline_takes_what_was_measured_or_the_sum_of_its_stages() -> None:
    """Three requests: ViT one by one 3 · (2 + 4), Prefill two and one, Action two and one."""
    device = sharing_device(batch_work=((1.0,), (1.0, 1.5), (1.0, 1.25)))
    assert replace(device, infer_ms=(30.0, 45.0)).inference_ms(2) == 45.0
    vit, prefill, action = 18.0, (1.0 + 12.0) + (1.0 + 8.0), (1.0 + 15.0) + (1.0 + 12.0)
    assert replace(device, infer_ms=(30.0, 45.0)).inference_ms(3) == vit + prefill + action
    assert device.inference_ms(1) == 6.0 + 9.0 + 13.0


def test_stage_times_of_the_paper_are_those_of_its_tables() -> None:
    paper = load_calibration('paper')
    assert paper.work_ms == (4.328931, 8.907749, 12.116308)
    assert paper.overhead_ms == (2.1, 0.25, 1.1)
    assert paper.alone_ms == pytest.approx(25.352988 + 3.45 + 1.2)
    assert (paper.rates[:, 0, 0, 0] == 1.0).all()


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'work_ms': [1.0, 2.0]}, 'work_ms is .*three numbers'),
        ({'work_ms': ['a', 2.0, 3.0]}, 'work_ms is .*three numbers'),
        ({'work_ms': 5}, 'work_ms is 5; three numbers'),
        ({'work_ms': [0.0, 1.0, 1.0]}, 'work_ms is .* ms is allowed'),
        ({'work_ms': [1e9, 1.0, 1.0]}, 'work_ms is .* ms is allowed'),
        ({'overhead_ms': [math.nan] * 3}, 'overhead_ms'),
        ({'output_ms': [1]}, 'output_ms is .*one number'),
        ({'output_ms': '1'}, 'output_ms is 1; one number'),
        ({'output_ms': -1.0}, 'output_ms is -1.0; 0 to 10000 ms'),
        ({'batch_work': [[1.0], [1.0]]}, 'each of the three stages'),
        ({'batch_work': 5}, 'each of the three stages'),
        ({'batch_work': [[1.0, math.nan], [1.0], [1.0]]}, 'batch_work'),
        ({'batch_work': [[1.0, 0.5], [1.0], [1.0]]}, 'batch_work of VIT .* rising'),
        ({'batch_work': [[], [1.0], [1.0]]}, 'batch_work of VIT'),
        ({'rates': [[1.0]]}, 'rates'),
        ({'rates': np.full((3, 2, 2, 2), 2.0).tolist()}, r'rate that is not in \(0, 1.5\]'),
        ({'rates': None}, 'either rates or demands'),
        ({'demands': {}}, 'either rates or demands'),
        ({'rates': None, 'demands': [1]}, 'demands is .*an object'),
        ({'rates': None, 'demands': {'bund': [1, 1, 1]}}, 'did you mean bound'),
        ({'rates': None, 'demands': {'bound': [1, 1, 1]}}, 'lacks demand, sharpness'),
        (
            {'rates': None, 'demands': {'bound': [0, 1, 1], 'demand': [1, 1, 1], 'sharpness': 2}},
            'whole numbers from 1 to 16',
        ),
        ({'format': 1}, 'has "format": 1, this version reads 2; measure anew'),
        ({'format': None}, '"format": 2 is needed'),
        ({'torch': 2}, 'torch is 2; text is needed'),
        ({'infer_ms': [10.0, 'a']}, 'infer_ms is .*a list of numbers'),
        ({'infer_ms': 0}, 'infer_ms is 0; a list of numbers'),
        ({'infer_ms': [0.0]}, 'infer_ms is .*above 0 ms'),
        ({'fit_error': 0.1}, 'fit_error is 0.1; null or an object with largest, median'),
        ({'fit_error': {'median': 0.1}}, 'an object with largest, median'),
        ({'fit_error': {'median': 0.2, 'largest': 0.1}}, '0 <= median <= largest'),
        ({'model_fact': 'x'}, 'did you mean model_facts'),
        ({'source': None}, 'source is missing'),
        ({'wrok_ms': [1, 1, 1]}, 'did you mean work_ms'),
    ],
    ids=str,
)
def test_wrong_file_is_refused_by_name_with_what_is_wrong(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    name = _written(tmp_path, **changes)
    with pytest.raises(ConfigError, match=says) as caught:
        load_calibration(name)
    assert name in str(caught.value)


def test_what_is_no_calibration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='no calibration papr; shipped: echo, groot_l40s, paper'):
        load_calibration('papr')
    with pytest.raises(ConfigError, match='cannot be read'):
        load_calibration(str(tmp_path / 'none.json'))
    (tmp_path / 'text.json').write_text('no JSON')
    with pytest.raises(ConfigError, match='is not JSON'):
        load_calibration(str(tmp_path / 'text.json'))
    (tmp_path / 'list.json').write_text('[1]')
    with pytest.raises(ConfigError, match='"format": 2'):
        load_calibration(str(tmp_path / 'list.json'))
