# SPDX-License-Identifier: Apache-2.0
"""Who may see the live page: the Host header on loopback, a token elsewhere."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from xinfer_ros.config.bounds import is_loopback, is_loopback_header

SECURITY_HEADERS = {
    'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    'Cache-Control': 'no-store',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'Server': 'xinfer_ros',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
}
CHALLENGE = {'WWW-Authenticate': 'Basic realm="xinfer_ros", charset="UTF-8"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAccess:
    """
    Decides from the headers of a request.

    :param host: address that is listened on
    :param token: what a visitor of the page must know; empty: nothing on loopback, and no page
        elsewhere
    """

    host: str
    token: str = ''

    @property
    def shows_page(self) -> bool:
        """Return whether the page is there at all; numbers for Prometheus always are."""
        return bool(self.token) or is_loopback(self.host)

    def knows_host(self, header: str) -> bool:
        """
        Return whether a request is meant for us.

        On loopback any web page could have its name resolved to this machine and read what we
        answer; such a request carries that page's name.

        :param header: Host header
        """
        return not is_loopback(self.host) or is_loopback_header(header)

    def knows_site(self, headers: Mapping[str, str]) -> bool:
        """
        Return whether it is the page itself that asks, or somebody who follows a link to it.

        :param headers: what browsers say in Sec-Fetch-*; others say nothing
        """
        if headers.get('Sec-Fetch-Site', 'none') in ('same-origin', 'none'):
            return True
        follows_link = headers.get('Sec-Fetch-Mode') == 'navigate'
        return follows_link and headers.get('Sec-Fetch-Dest') == 'document'

    def is_authorized(self, header: str) -> bool:
        """
        Return whether a visitor knows the token; the comparison takes as long for any guess.

        :param header: Authorization header: Bearer TOKEN, or Basic with TOKEN as the password
        """
        if not self.token:
            return self.shows_page
        kind, _, value = header.partition(' ')
        given = value.strip().encode(errors='surrogateescape')  # whatever bytes came
        if kind.lower() == 'basic':
            given = _password(given)
        return hmac.compare_digest(given, self.token.encode())


def _password(credentials: bytes) -> bytes:
    try:
        return base64.b64decode(credentials, validate=True).partition(b':')[2]
    except binascii.Error:
        return b''
