# SPDX-License-Identifier: Apache-2.0
"""Who may call the gateway."""

from pathlib import Path

import pytest

from xinfer_ros.brain.gateway.access import Access, read_token
from xinfer_ros.errors import ConfigError

LOCAL = Access('127.0.0.1', 'http://brain.local:8100', '')
GUARDED = Access('0.0.0.0', '', 'secret-1')


@pytest.mark.parametrize('text', ['', ' \n', 'two words\n', 'one\ntwo\n', 'gehéim', 'a\x00b'])
def test_a_token_file_must_hold_the_token_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / 'token').write_text(text)
    with pytest.raises(ConfigError, match='must hold the token alone'):
        read_token(str(tmp_path / 'token'))


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='can not be read'):
        read_token(str(tmp_path / 'none'))
    (tmp_path / 'token').write_text(' secret-1 \n')
    assert read_token(str(tmp_path / 'token')) == 'secret-1'
    assert read_token('') == ''


@pytest.mark.parametrize(
    'headers',
    [
        {'Authorization': 'Bearer secret-1'},
        {'Authorization': 'bearer  secret-1'},
        {'X-Api-Key': 'secret-1'},
        {'Authorization': 'Basic c2VjcmV0', 'X-Api-Key': 'secret-1'},
    ],
)
def test_the_token_is_taken_as_clients_of_both_interfaces_send_it(headers: dict[str, str]) -> None:
    assert GUARDED.refusal('POST', '/episodes', headers) is None


@pytest.mark.parametrize(
    'headers',
    [{}, {'Authorization': 'secret-1'}, {'Authorization': 'Bearer secret-2'},
     {'Authorization': 'Bearer \udcff'}, {'X-Api-Key': ''}],
)  # fmt: skip
def test_without_the_token_nobody_enters(headers: dict[str, str]) -> None:
    refusal = GUARDED.refusal('GET', '/status.json', headers)
    assert refusal is not None
    assert refusal[0] == 401
    assert GUARDED.refusal('GET', '/health', headers) is None


@pytest.mark.parametrize('host', ['127.0.0.1:8100', 'localhost', '[::1]:8100', 'Brain.Local:8100'])
def test_without_a_token_this_machine_and_the_public_name_are_served(host: str) -> None:
    assert LOCAL.refusal('POST', '/episodes', {'Host': host}) is None


@pytest.mark.parametrize(
    'headers',
    [
        {'Host': 'evil.example:8100'},
        {},
        {'Host': '127.0.0.1:8100', 'Sec-Fetch-Site': 'cross-site'},
    ],
)
def test_a_web_page_that_is_seen_on_this_machine_gets_nowhere(headers: dict[str, str]) -> None:
    """Its name may be resolved to this machine, or it sends a form here."""
    refusal = LOCAL.refusal('POST', '/episodes', headers)
    assert refusal is not None
    assert refusal[0] == 403


def test_only_other_machines_without_a_token_are_worth_a_warning() -> None:
    assert Access('0.0.0.0', '', '').is_open
    assert not GUARDED.is_open
    assert not LOCAL.is_open
