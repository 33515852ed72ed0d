# SPDX-License-Identifier: Apache-2.0
"""A local folder with a checkpoint: whose it is, and what its owner adds in ``xinfer.json``."""

import json
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.opaque import PREFIX
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.predict.matching import is_timed
from xinfer_ros.setting import nearest

CONFIG_FILE = 'config.json'
SETTINGS_FILE = 'xinfer.json'
# The `type` of config.json, and the module that loads such a folder
FAMILIES = {
    'pi05': 'xinfer_ros.models.pi05_folder',
    'smolvla': 'xinfer_ros.models.smolvla_folder',
}
# openpi's config.json has no type, but always these keys
_OPENPI_KEYS = {'action_dim', 'action_horizon', 'paligemma_variant', 'action_expert_variant'}

SettingsT = TypeVar('SettingsT')
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReport:
    """
    What a folder holds, read without its weights.

    :param family: the name of the architecture
    :param contract: what crosses the border between robot and server
    :param facts: further facts, a name and a text each
    :param joints: of each joint its name, what its state is normalised by, what its action is
        normalised by, and whether actions are absolute or relative
    :param warnings: what the folder does not tell and had to be assumed
    """

    family: str
    contract: ModelContract
    facts: tuple[tuple[str, str], ...]
    joints: tuple[tuple[str, str, str, str], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    How far a folder's model is from one of its known answers.

    :param check: what was compared
    :param batch: requests at once
    :param largest: largest absolute difference, model space
    """

    check: str
    batch: int
    largest: float


class Family(Protocol):
    """What the module of an architecture offers for folders."""

    def load(
        self, folder: Path, options: ModelOptions, progress: Progress | None = None
    ) -> StagedModel:
        """Return the model of a folder; ``progress`` is told weights read and weights in all."""
        ...

    def report(self, folder: Path, options: ModelOptions) -> FolderReport:
        """Return what the folder holds, without reading the weights."""
        ...

    def differences(
        self, folder: Path, options: ModelOptions, progress: Progress | None = None
    ) -> list[Difference]:
        """Load the weights and compare with known answers; none if the folder has no answers."""
        ...


def is_folder(name: str) -> bool:
    """Tell whether a model's name means a folder: one that exists, or a path."""
    if is_timed(name) or name.startswith(PREFIX):
        return False
    return '/' in name or name in ('.', '..', '~') or Path(name).is_dir()


def existing_folder(name: str) -> Path:
    """
    Return the folder of a name.

    :raises ConfigError: if there is none
    """
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(f'model {name!r}: the folder {folder} does not exist')
    return folder


def family_of(folder: Path) -> Family:
    """
    Return what can load a folder.

    :raises ConfigError: if its config.json is absent or of an unknown architecture
    """
    config = read_object(folder / CONFIG_FILE)
    kind = config.get('type')
    if kind is None and config.keys() >= _OPENPI_KEYS:
        kind = 'pi05'
    if kind not in FAMILIES:
        raise ConfigError(
            f'{folder / CONFIG_FILE}: the type is {kind!r}; served are folders of type '
            f'{", ".join(FAMILIES)}, and those of openpi, which have no type, but '
            f'{", ".join(sorted(_OPENPI_KEYS))}'
        )
    return cast('Family', import_module(FAMILIES[kind]))


def read_object(path: Path) -> dict[str, Any]:
    """
    Return the object that a JSON file holds.

    :raises ConfigError: if the file is absent or holds something else
    """
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f'{path} does not exist; the folder of a checkpoint has it') from None
    except (OSError, ValueError) as error:
        raise ConfigError(f'{path} is no readable JSON file: {error}') from error
    if not isinstance(found, dict):
        raise ConfigError(f'{path} holds a {type(found).__name__}, an object is needed')
    return found


def owner_setting(
    kind: type | tuple[type, ...], meaning: str, *, choices: tuple[str, ...] = ()
) -> Any:
    """
    Return a field of a dataclass that is read from ``xinfer.json``; absent it is None.

    :param kind: of the value; ``list`` means a list of text, null where a place is left out
    :param meaning: for the text of ``xinfer models`` and the documentation
    :param choices: allowed texts
    """
    return field(default=None, metadata={'kind': kind, 'meaning': meaning, 'choices': choices})


def read_settings(folder: Path, kind: type[SettingsT]) -> SettingsT:
    """
    Return what the owner of a folder adds to it; nothing if there is no ``xinfer.json``.

    :param kind: a dataclass of ``owner_setting`` fields
    :raises ConfigError: an unknown key, with the nearest one, or a value of another type
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        return kind()
    known = {setting.name: setting for setting in fields(cast('Any', kind))}
    values = {}
    for name, value in read_object(path).items():
        if name not in known:
            raise ConfigError(f'{path}: unknown key {name}; {nearest(name, list(known))}')
        values[name] = _checked(known[name], value, path)
    return kind(**values)


def _checked(setting: 'Field[Any]', value: Any, path: Path) -> Any:
    kind, choices = setting.metadata['kind'], setting.metadata['choices']
    good = type(value) is kind and (not choices or value in choices)
    if good and kind is int:
        good = value > 0
    if good and kind is list:
        good = all(item is None or (isinstance(item, str) and item) for item in value)
        value = tuple(value)
    if not good:
        words = {int: 'a whole number above 0', bool: 'true or false', str: 'text'}
        allowed = ' or '.join(choices) if choices else words.get(kind, 'a list of text')
        raise ConfigError(f'{path}: {setting.name} is {value!r}; allowed: {allowed}')
    return value
