# SPDX-License-Identifier: Apache-2.0
"""Who may call the gateway: whoever knows the token; without one, this machine but no web page."""

import hmac
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from xinfer_ros.config.bounds import is_loopback, is_loopback_header
from xinfer_ros.errors import ConfigError

OPEN_PATHS = ('/health',)
_READS = ('GET', 'HEAD')


def read_token(path: str) -> str:
    """
    Return the token in a file, empty if no file is given.

    :raises ConfigError: if it can't be read, or holds no token or more than that
    """
    if not path:
        return ''
    try:
        text = Path(path).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'token file {path}: can not be read ({type(error).__name__})') from None
    words = text.split()
    if len(words) != 1 or not words[0].isascii() or not words[0].isprintable():
        raise ConfigError(
            f'token file {path} holds {len(words)} words; it must hold the token alone, in ASCII'
        )
    return words[0]


class Access:
    """
    Decides from the head of a request.

    :param host: address that is listened on
    :param public_url: how agents reach it, empty: by its address
    :param token: that agents must know; empty: none is asked for
    """

    def __init__(self, host: str, public_url: str, token: str) -> None:
        self._is_local = is_loopback(host)
        self._public_host = urlsplit(public_url).netloc.lower()
        self._token = token

    @property
    def is_open(self) -> bool:
        """Return whether other machines get in without a token."""
        return not self._token and not self._is_local

    def refusal(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, str] | None:
        """Return status and words of a refusal, None if the request may enter."""
        if path in OPEN_PATHS:
            return None
        if self._token:
            if self._knows_token(headers):
                return None
            return 401, 'send the token of the gateway as API key'
        if not self._knows_host(headers.get('Host', '')):
            return 403, (
                'without a token only this machine is served, by its own name or address; set '
                'public_url if agents use another one, or token_file'
            )
        if method not in _READS and headers.get('Sec-Fetch-Site', 'none') not in (
            'none',
            'same-origin',
        ):
            return 403, 'a page of another site has no access; set token_file to let it in'
        return None

    def _knows_token(self, headers: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get('Authorization', '').partition(' ')
        if scheme.lower() != 'bearer':
            token = headers.get('X-Api-Key', '')
        given = token.strip().encode(errors='surrogateescape')  # whatever bytes came
        return hmac.compare_digest(given, self._token.encode())

    def _knows_host(self, header: str) -> bool:
        """
        Return whether a request is meant for us.

        Any web page could have its name resolved to this machine; such a request carries it.
        """
        return (
            not self._is_local or is_loopback_header(header) or header.lower() == self._public_host
        )
