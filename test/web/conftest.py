# SPDX-License-Identifier: Apache-2.0
"""A browser for all tests here, and the page as the sources have it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from xinfer_ros.ros.process import share_folder

from .browser import Browser, browsing, missing

SOURCES = Path(__file__).parents[2] / 'web'


@pytest.fixture(scope='session')
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give one window, with nothing in it."""
    if missing():
        pytest.skip(missing())
    with browsing(tmp_path_factory.mktemp('browser')) as browser:
        browser.resize(1440, 900)
        yield browser


@pytest.fixture(scope='session')
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the page, and with the charting library if the build has it."""
    folder = tmp_path_factory.mktemp('page') / 'web'
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns('node_modules'))
    vendored = share_folder() / 'web' / 'vendor'
    if vendored.is_dir():
        shutil.copytree(vendored, folder / 'vendor')
    return folder
