# SPDX-License-Identifier: Apache-2.0
"""What errors say about the device (case SL-04)."""

import subprocess
import sys

import pytest
import torch

from xinfer_ros.errors import ModelError, Reason, Rejected
from xinfer_ros.models.device_error import classify

ILLEGAL = (
    'CUDA error: an illegal memory access was encountered\n'
    'CUDA kernel errors might be asynchronously reported at some other API call, so the '
    'stacktrace below might be incorrect.'
)


@pytest.mark.parametrize(
    'error',
    [
        torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 20.00 MiB.'),
        RuntimeError('CUDA error: out of memory'),
        RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`'),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to ..."
        ),
        MemoryError(),
    ],
    ids=str,
)
def test_lack_of_memory_passes(error: Exception) -> None:
    assert classify(error) == 'out_of_memory'


@pytest.mark.parametrize(
    'error',
    [
        torch.AcceleratorError(ILLEGAL),
        RuntimeError(ILLEGAL),
        torch.AcceleratorError('CUDA error: device-side assert triggered'),
        torch.AcceleratorError('CUDA error: unspecified launch failure'),
        RuntimeError(
            'CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`'
        ),
        RuntimeError('cuDNN error: CUDNN_STATUS_EXECUTION_FAILED'),
    ],
    ids=str,
)
def test_failed_device_is_lost(error: Exception) -> None:
    assert classify(error) == 'device_lost'


@pytest.mark.parametrize(
    'error',
    [
        ValueError('CUDA error: told by somebody who is not torch'),
        RuntimeError('mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)'),
        torch.AcceleratorError('CUDA error: invalid configuration argument'),
        RuntimeError('CUDA error: operation not permitted when stream is capturing'),
        RuntimeError('CUDA error: no kernel image is available for execution on the device'),
        ModelError('tiny has no slots; call bind() first'),
        Rejected(Reason.REJECTED_INSTRUCTION, 'out of memory is what the text says'),
    ],
    ids=str,
)
def test_wrong_call_is_the_models(error: Exception) -> None:
    assert classify(error) == 'model'


def raised_from(error: Exception, cause: Exception) -> Exception:
    """Return ``error`` as it is after being raised from ``cause``."""
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_cause_counts_and_the_worst_of_a_chain_wins() -> None:
    assert classify(raised_from(ModelError('a stage failed'), MemoryError())) == 'out_of_memory'
    lost = raised_from(MemoryError(), torch.AcceleratorError(ILLEGAL))
    assert classify(raised_from(ModelError('a stage failed'), lost)) == 'device_lost'


def test_error_raised_while_another_was_handled_counts_unless_it_is_hidden() -> None:
    def after(hidden: bool) -> Exception:
        try:
            try:
                raise torch.AcceleratorError(ILLEGAL)
            except RuntimeError:
                if hidden:
                    raise ModelError('a stage failed') from None
                raise ModelError('a stage failed')  # noqa: B904
        except ModelError as caught:
            return caught

    assert classify(after(hidden=False)) == 'device_lost'
    assert classify(after(hidden=True)) == 'model'


def test_classifying_does_not_need_torch() -> None:
    """Whoever reports an error must not load torch for it."""
    code = (
        'import sys\n'
        'from xinfer_ros.models.device_error import classify\n'
        "assert classify(MemoryError()) == 'out_of_memory'\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
