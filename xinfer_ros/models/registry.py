# SPDX-License-Identifier: Apache-2.0
"""Models by name."""

from collections.abc import Callable
from importlib import import_module

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.aloha import aloha_contract
from xinfer_ros.models.echo import EchoModel

ECHO_INSTRUCTION_BYTES = 400


def model_names() -> tuple[str, ...]:
    """Return the names that ``make_model`` knows."""
    return tuple(_makers())


def make_model(name: str, *, seed: int = 0, contract: ModelContract | None = None) -> StagedModel:
    """
    Return a model that is ready for ``bind``.

    :param name: one of ``model_names()``
    :param seed: seed of random weights; without effect on models that have none
    :param contract: what ``echo`` shall promise, None for that of ``echo_contract``; other models
        bring their own
    :raises ConfigError: if the name is unknown, or a contract is given to a model with its own
    """
    makers = _makers()
    if name not in makers:
        raise ConfigError(f'model {name!r} is unknown; known are {", ".join(makers)}')
    return makers[name](seed, contract)


def preload(name: str) -> None:
    """Import what a model needs, without making it; an unknown name imports nothing."""
    if name == 'tiny':
        import_module('xinfer_ros.models.tiny')


def echo_contract() -> ModelContract:
    """Return what ``echo`` promises unless told otherwise: the same robot as ``tiny``."""
    return aloha_contract('echo', ECHO_INSTRUCTION_BYTES)


def _makers() -> dict[str, Callable[[int, ModelContract | None], StagedModel]]:
    return {'tiny': _make_tiny, 'echo': _make_echo}


def _make_tiny(seed: int, contract: ModelContract | None) -> StagedModel:
    if contract is not None:
        raise ConfigError('model tiny has a contract of its own; give none')
    # Here, so that a process that only asks for names or pictures does not load torch.
    from xinfer_ros.models.tiny import TinyVla

    return TinyVla(seed)


def _make_echo(seed: int, contract: ModelContract | None) -> StagedModel:
    return EchoModel(contract if contract is not None else echo_contract())
