# SPDX-License-Identifier: Apache-2.0
"""Models by name."""

import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.fixed import make_fixed_model
from xinfer_ros.models.folder import existing_folder, family_of, is_folder
from xinfer_ros.models.opaque import PREFIX, make_opaque_model
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.table import make_table_model

ECHO_INSTRUCTION_BYTES = 400
# of models.random_families, which loads torch
RANDOM_FAMILIES = (
    'tiny_smolvla', 'tiny_wall', 'random_smolvla', 'random_wall_oss_05', 'random_vla_2b',
)  # fmt: skip


def model_names() -> tuple[str, ...]:
    """Return the names that ``make_model`` knows."""
    return tuple(_makers())


def make_model(
    name: str, options: ModelOptions | None = None, *, contract: ModelContract | None = None
) -> StagedModel:
    """
    Return a model that is ready for ``bind``.

    :param name: one of ``model_names()``, ``table:`` and a calibration, ``fixed:`` and a time,
        ``python:`` and a factory, see ``make_opaque_model``, or the folder of a checkpoint
    :param options: how it is loaded and used; None for the defaults
    :param contract: what ``echo`` shall promise, None for that of ``echo_contract``; other models
        bring their own
    :raises ConfigError: if the name is unknown, or a contract is given to a model with its own
    """
    makers = _makers()
    chosen = options if options is not None else ModelOptions()
    if name.startswith(PREFIX):
        _refuse_contract(name, contract)
        return make_opaque_model(name, chosen)
    for prefix, make in (('table:', make_table_model), ('fixed:', make_fixed_model)):
        if name.startswith(prefix):
            _refuse_contract(name, contract)
            return make(name)
    if name in makers:
        return makers[name](chosen, contract)
    if is_folder(name):
        _refuse_contract(name, contract)
        folder = existing_folder(name)
        return family_of(folder).load(folder, chosen)
    close = difflib.get_close_matches(name, makers, n=1)
    hint = f'did you mean {close[0]}? ' if close else ''
    raise ConfigError(
        f'model {name!r} is unknown; {hint}known are {", ".join(makers)}, table:CALIBRATION, '
        f'fixed:MS, {PREFIX}package.module:factory, and the folder of a checkpoint, /path/to/it'
    )


def preload(name: str) -> None:
    """Import what a model needs, without making it; an unknown name imports nothing."""
    if name == 'tiny':
        import_module('xinfer_ros.models.tiny')
    elif name in RANDOM_FAMILIES:
        import_module('xinfer_ros.models.random_families')
    elif name.startswith(PREFIX):
        with suppress(ImportError):  # likewise
            import_module(name.removeprefix(PREFIX).partition(':')[0])
    elif name not in _makers() and is_folder(name):
        with suppress(ConfigError):  # what is wrong with it is said when the model is made
            family_of(existing_folder(name))


def echo_contract(joints: Sequence[str] = (), cameras: Sequence[str] = ()) -> ModelContract:
    """
    Return what ``echo`` promises: unless told otherwise, the same robot as ``tiny``.

    :param joints: names of the joints, none: those of the ALOHA robot
    :param cameras: names of the cameras, none: those of the ALOHA robot
    """
    aloha = aloha_contract('echo', ECHO_INSTRUCTION_BYTES)
    size = aloha.cameras[0]
    return replace(
        aloha,
        joint_names=tuple(joints) or aloha.joint_names,
        cameras=tuple(replace(size, name=name) for name in cameras) or aloha.cameras,
    )


def _makers() -> dict[str, Callable[[ModelOptions, ModelContract | None], StagedModel]]:
    random = {name: partial(_make_random, name) for name in RANDOM_FAMILIES}
    return {'tiny': _make_tiny, 'echo': _make_echo, 'table': _make_table, **random}


def _make_tiny(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    _refuse_contract('tiny', contract)
    # Here, so that a process that only asks for names or pictures does not load torch.
    from xinfer_ros.models.tiny import TinyVla

    return TinyVla(options)


def _make_random(name: str, options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    _refuse_contract(name, contract)
    from xinfer_ros.models.random_families import make_random_family

    return make_random_family(name, options)


def _make_echo(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    if contract is None:
        contract = echo_contract(options.echo_joints, options.echo_cameras)
    return EchoModel(contract)


def _make_table(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    _refuse_contract('table', contract)
    return make_table_model('table')


def _refuse_contract(name: str, contract: ModelContract | None) -> None:
    if contract is not None:
        raise ConfigError(f'model {name} has a contract of its own; give none')
