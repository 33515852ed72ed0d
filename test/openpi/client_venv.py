# SPDX-License-Identifier: Apache-2.0
"""The unmodified openpi-client in a virtual environment of its own, made once and kept."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / 'requirements' / 'openpi-client.txt'
UNREACHABLE = re.compile(r'connection broken by|ConnectionError|Name or service not known', re.I)


def client_python() -> Path:
    """
    Return the Python that has openpi-client; skip the test where PyPI can't be reached.

    Made under build/, for which git does not look; another set of pins makes another one.
    """
    version = f'{sys.version_info.major}.{sys.version_info.minor}'
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + version.encode()).hexdigest()[:12]
    folder = ROOT / 'build' / f'openpi-client-{digest}'
    python = folder / 'bin' / 'python'
    if (folder / 'complete').exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run(sys.executable, '-m', 'venv', str(folder))
    pip = (str(python), '-m', 'pip', '--disable-pip-version-check', '--retries', '1')
    _run(*pip, 'install', '--quiet', '--only-binary', ':all:', '-r', str(REQUIREMENTS))
    (folder / 'complete').touch()
    return python


def client_environment() -> dict[str, str]:
    """Return variables for another venv: what the wheels of ROS set is not for it."""
    inherited = ('_ROS_WHEELS_BOOTSTRAP_COMPLETE', 'LD_LIBRARY_PATH', 'PYTHONPATH')
    return {name: value for name, value in os.environ.items() if name not in inherited}


def _run(*command: str) -> None:
    done = subprocess.run(
        command, env=client_environment(), capture_output=True, text=True, timeout=110, check=False
    )
    said = done.stdout + done.stderr
    if done.returncode and UNREACHABLE.search(said):
        pytest.skip('PyPI can not be reached, so openpi-client can not be installed')
    assert done.returncode == 0, said
