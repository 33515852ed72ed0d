# SPDX-License-Identifier: Apache-2.0
"""Parameter files for tests."""

from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path):
    """Return a function that writes a parameter file."""

    def _write(text: str | bytes, name: str = 'params.yaml') -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return _write
