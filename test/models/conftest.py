# SPDX-License-Identifier: Apache-2.0
"""What all tests of models need."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope='package', autouse=True)
def one_thread() -> Iterator[None]:
    """Compute in one thread, as a lane does: on a busy machine several wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
