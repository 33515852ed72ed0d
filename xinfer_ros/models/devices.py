# SPDX-License-Identifier: Apache-2.0
"""Which device and which type of weights a model gets."""

import re

import torch

from xinfer_ros.errors import ConfigError

_TYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


def chosen_device(name: str) -> torch.device:
    """
    Return the device of a setting.

    :param name: ``auto`` (the first CUDA device if there is one), ``cpu``, ``cuda`` or ``cuda:N``
    :raises ConfigError: if the text is another one, or there is no such device
    """
    match = re.fullmatch(r'auto|cpu|cuda(?::(\d{1,3}))?', name)
    if match is None:
        raise ConfigError(f'device is {name!r}; allowed: auto, cpu, cuda or cuda:N')
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == 'auto':
        name = 'cuda' if count else 'cpu'
    if name == 'cpu':
        return torch.device('cpu')
    index = int(match[1] or 0)
    if index >= count:
        seen = f'{count} CUDA devices' if count else 'no CUDA device'
        built = 'built for CUDA' if torch.version.cuda else 'built without CUDA'
        raise ConfigError(
            f'device is {name}, but torch {torch.__version__} ({built}) sees {seen}; choose cpu '
            'or auto, or install a torch with CUDA and look at what nvidia-smi lists'
        )
    return torch.device('cuda', index)


def chosen_dtype(name: str, device: torch.device) -> torch.dtype:
    """
    Return the type of weights of a setting.

    :param name: ``auto`` (bfloat16 on CUDA, float32 on a CPU), ``float32`` or ``bfloat16``
    :raises ConfigError: if the text is another one
    """
    if name == 'auto':
        return torch.float32 if device.type == 'cpu' else torch.bfloat16
    if name not in _TYPES:
        raise ConfigError(f'model_dtype is {name!r}; allowed: auto, {", ".join(_TYPES)}')
    return _TYPES[name]
