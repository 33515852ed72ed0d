# SPDX-License-Identifier: Apache-2.0
"""Models by name, and what their import costs."""

import subprocess
import sys

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.registry import echo_contract, make_model, model_names


@pytest.mark.parametrize('name', model_names())
def test_every_known_name_makes_a_model_of_that_name(name: str) -> None:
    assert make_model(name).contract.name == name


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="model 'pi0' is unknown; known are tiny, echo"):
        make_model('pi0')


def test_echo_takes_any_contract_and_tiny_takes_none() -> None:
    assert make_model('echo', contract=echo_contract()).contract == echo_contract()
    with pytest.raises(ConfigError, match='contract of its own'):
        make_model('tiny', contract=echo_contract())


def test_front_end_gets_pictures_and_echo_without_torch() -> None:
    code = (
        'import sys, xinfer_ros.models.images\n'
        'from xinfer_ros.models.registry import make_model\n'
        "make_model('echo')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
