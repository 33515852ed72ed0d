# SPDX-License-Identifier: Apache-2.0
"""The machine that models run on: what it is called, and what torch holds of its memory."""

import os
import platform
import sys
from pathlib import Path

from xinfer_ros.predict.identity import cpu_device


def device_name(device: str) -> str:
    """
    Return what a model's device is called: the name of the GPU, or of the CPU with its cores.

    Ask after the model is made: one that needs no torch runs on the CPU, and torch takes seconds
    to import.

    :param device: the setting: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``
    """
    torch = sys.modules.get('torch')
    if torch is None or device == 'cpu' or not torch.cuda.is_available():
        return cpu_device(_cpu(), len(os.sched_getaffinity(0)))
    index = int(device.partition(':')[2] or 0)
    return str(torch.cuda.get_device_name(index))


def is_cpu(device: str) -> bool:
    """Return whether a model's device is the CPU; ask after the model is made."""
    torch = sys.modules.get('torch')
    return torch is None or device == 'cpu' or not torch.cuda.is_available()


def torch_version() -> str:
    """Return the version of torch, empty if nothing has needed it."""
    torch = sys.modules.get('torch')
    return '' if torch is None else str(torch.__version__)


def use_threads(count: int) -> None:
    """Let operations of this process use so many threads; call it after the model is made."""
    torch = sys.modules.get('torch')
    if torch is not None:
        torch.set_num_threads(count)


def use_threads_here(count: int) -> None:
    """Let operations of the calling thread use so many threads, whatever others use."""
    torch = sys.modules.get('torch')
    if torch is not None:
        torch.get_num_threads()  # else the first operation would take over what was set last
        torch.set_num_threads(count)


def release_memory() -> None:
    """Give the device's memory that torch keeps in reserve back, for another process."""
    torch = sys.modules.get('torch')
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _cpu() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.processor() or platform.machine()
