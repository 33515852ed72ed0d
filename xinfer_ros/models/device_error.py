# SPDX-License-Identifier: Apache-2.0
"""What an error of a stage says about the device; without torch, by type, name and text."""

from collections.abc import Iterator
from typing import Literal

DeviceFault = Literal['out_of_memory', 'device_lost', 'model']

_OUT_OF_MEMORY = ('out of memory', "can't allocate memory", 'status_alloc_failed')
# What a device reports once and then goes on: the call was wrong, not the device.
_HARMLESS = (
    'invalid argument',
    'invalid configuration argument',
    'invalid device function',
    'invalid resource handle',
    'no kernel image is available',
    'too many resources requested for launch',
    'captur',  # everything about stream capture
)
_LOST = (
    'cuda error',
    'device-side assert',
    'cublas_status_execution_failed',
    'cublas_status_internal_error',
    'cublas_status_mapping_error',
    'cublas_status_not_initialized',
    'cudnn_status_execution_failed',
    'cudnn_status_internal_error',
    'cudnn_status_not_initialized',
)


def classify(error: BaseException) -> DeviceFault:
    """
    Return what an error says about the device.

    A device that has failed once fails in every later call too, and only a new process cures it; a
    lack of memory passes. What an error was raised from, or beside, counts as well.

    :param error: of torch or of anything else
    :returns: ``device_lost`` before ``out_of_memory`` before ``model``
    """
    faults = {_fault(link) for link in _chain(error)}
    if 'device_lost' in faults:
        return 'device_lost'
    return 'out_of_memory' if 'out_of_memory' in faults else 'model'


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _fault(error: BaseException) -> DeviceFault:
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {'OutOfMemoryError', 'MemoryError'}:
        return 'out_of_memory'
    if 'RuntimeError' not in names:
        return 'model'
    text = str(error).lower()
    if any(part in text for part in _OUT_OF_MEMORY):
        return 'out_of_memory'
    if any(part in text for part in _HARMLESS):
        return 'model'
    lost = 'AcceleratorError' in names or any(part in text for part in _LOST)
    return 'device_lost' if lost else 'model'
