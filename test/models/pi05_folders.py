# SPDX-License-Identifier: Apache-2.0
"""Folders with a tiny π0.5 checkpoint in both published layouts, for the tests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.pi05_folder import read_folder
from xinfer_ros.models.pi05_report import Pi05Folder
from xinfer_ros.models.rtc import RtcOptions

STORED = Path(__file__).parents[1] / 'data' / 'pi05_tiny'
BEFORE, AFTER = 'policy_preprocessor.json', 'policy_postprocessor.json'
BEFORE_ARRAYS = 'policy_preprocessor_step_3_normalizer_processor.safetensors'
AFTER_ARRAYS = 'policy_postprocessor_step_0_unnormalizer_processor.safetensors'
DIM = 14
TINY = {'vision_heads': 4, 'tokenizer': 'bytes'}
Object = dict[str, Any]


def lerobot_folder(path: Path, *, oracle: bool = False) -> Path:
    """Copy the shipped checkpoint; returns the folder."""
    ignored = () if oracle else ('oracle.npz',)
    shutil.copytree(STORED, path, ignore=shutil.ignore_patterns('README.md', *ignored))
    return path


def openpi_folder(path: Path, data_sets: tuple[str, ...] = ('towels',)) -> Path:
    """Lay the shipped weights out as openpi's conversion does; returns the folder."""
    path.mkdir()
    weights = load_file(STORED / 'model.safetensors')
    save_file(
        {name.removeprefix('model.'): weight for name, weight in weights.items()},
        path / 'model.safetensors',
    )
    config = {
        'action_dim': 32,
        'action_horizon': 16,
        'paligemma_variant': 'gemma_2b',
        'action_expert_variant': 'gemma_300m',
        'precision': 'float32',
    }
    (path / 'config.json').write_text(json.dumps(config))
    write_settings(path, vision_heads=4, tokenizer='bytes', relative_actions=False)
    for index, name in enumerate(data_sets):
        folder = path / 'assets' / name
        folder.mkdir(parents=True)
        span = 1.0 + index + 0.1 * np.arange(7)
        entry = {
            'mean': [0.0] * 7, 'std': [1.0] * 7, 'q01': list(-span), 'q99': list(span),
        }  # fmt: skip
        stats = {'norm_stats': {'state': entry, 'actions': entry}}
        (folder / 'norm_stats.json').write_text(json.dumps(stats))
    return path


def write_settings(folder: Path, **settings: Any) -> None:
    """Write ``xinfer.json``."""
    (folder / 'xinfer.json').write_text(json.dumps(settings))


def mend(path: Path, change: Callable[[Object], None]) -> None:
    """Change a JSON file in place."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def step(found: Object, name: str) -> Object:
    """Return a step of a processor's file by name."""
    return next(entry for entry in found['steps'] if entry['registry_name'] == name)


def write_arrays(folder: Path, **arrays: Any) -> None:
    """
    Replace statistics in both processors' files.

    :param arrays: ``state_q01`` or ``action_mean`` and so on
    """
    for file in (BEFORE_ARRAYS, AFTER_ARRAYS):
        found = load_file(folder / file)
        for name, values in arrays.items():
            feature, kind = name.rsplit('_', 1)
            key = f'{"observation.state" if feature == "state" else "action"}.{kind}'
            found[key] = np.asarray(values, np.float32)
        save_file(found, folder / file)


def read(folder: Path, rtc: RtcOptions | None = None) -> Pi05Folder:
    """Return what a folder says."""
    return read_folder(folder, ModelOptions(rtc=rtc if rtc is not None else RtcOptions()))


def set_config(folder: Path, **values: Any) -> None:
    """Change values of config.json."""
    mend(folder / 'config.json', lambda found: found.update(values))


def set_step(folder: Path, file: str, name: str, **values: Any) -> None:
    """Change settings of a processor's step."""
    mend(folder / file, lambda found: step(found, name)['config'].update(values))
