# SPDX-License-Identifier: Apache-2.0
"""Settings of the server for tests, and what those that are refused say."""

from collections.abc import Callable

import pytest

from xinfer_ros.errors import ConfigError

SERVER = '/fleet/xinfer_server'


def error_of(function: Callable[..., object], *arguments: object) -> str:
    """Return the text of the error with which a call is refused."""
    with pytest.raises(ConfigError) as caught:
        function(*arguments)
    return str(caught.value)


def server_file(setting: str) -> str:
    """Return a parameter file that sets one setting of the server."""
    return f'{SERVER}:\n  ros__parameters:\n    {setting}\n'
