# SPDX-License-Identifier: Apache-2.0
"""Models by name."""

from collections.abc import Callable
from importlib import import_module

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.opaque import PREFIX, make_opaque_model
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.models.table import make_table_model

ECHO_INSTRUCTION_BYTES = 400


def model_names() -> tuple[str, ...]:
    """Return the names that ``make_model`` knows."""
    return tuple(_makers())


def make_model(
    name: str, options: ModelOptions | None = None, *, contract: ModelContract | None = None
) -> StagedModel:
    """
    Return a model that is ready for ``bind``.

    :param name: one of ``model_names()``, ``table:`` and a calibration, or ``python:`` and a
        factory, see ``make_opaque_model``
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
    if name.startswith('table:'):
        _refuse_contract(name, contract)
        return make_table_model(name)
    if name not in makers:
        raise ConfigError(
            f'model {name!r} is unknown; known are {", ".join(makers)}, table:CALIBRATION and '
            f'{PREFIX}package.module:factory'
        )
    return makers[name](chosen, contract)


def preload(name: str) -> None:
    """Import what a model needs, without making it; an unknown name imports nothing."""
    if name == 'tiny':
        import_module('xinfer_ros.models.tiny')


def echo_contract() -> ModelContract:
    """Return what ``echo`` promises unless told otherwise: the same robot as ``tiny``."""
    return aloha_contract('echo', ECHO_INSTRUCTION_BYTES)


def _makers() -> dict[str, Callable[[ModelOptions, ModelContract | None], StagedModel]]:
    return {'tiny': _make_tiny, 'echo': _make_echo, 'table': _make_table}


def _make_tiny(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    _refuse_contract('tiny', contract)
    # Here, so that a process that only asks for names or pictures does not load torch.
    from xinfer_ros.models.tiny import TinyVla

    return TinyVla(options)


def _make_echo(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    return EchoModel(contract if contract is not None else echo_contract())


def _make_table(options: ModelOptions, contract: ModelContract | None) -> StagedModel:
    _refuse_contract('table', contract)
    return make_table_model('table')


def _refuse_contract(name: str, contract: ModelContract | None) -> None:
    if contract is not None:
        raise ConfigError(f'model {name} has a contract of its own; give none')
