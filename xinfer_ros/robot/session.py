# SPDX-License-Identifier: Apache-2.0
"""A robot's place at the server: asked for, granted, kept alive, lost and asked for again."""

import threading
from dataclasses import dataclass

from xinfer_ros.errors import Rejected

ASK_AGAIN_NS = 500_000_000
ANSWER_TIMEOUT_NS = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """
    What the server has granted.

    :param session: nonce that every observation carries
    :param epoch: engine life that answers this robot
    :param lease_ns: silence after which another robot may take the id [ns]
    :param max_commitment_steps: the most that the server honours, None if it is not known [steps]
    """

    session: int
    epoch: int
    lease_ns: int
    max_commitment_steps: int | None = None


class SessionKeeper:
    """
    Decides when to ask for registration; the node does the asking.

    Asked for: when there is no grant; when the server announces another epoch; when nothing was
    sent for a third of the lease; when a request got no answer. Refused: again after half a
    second, unanswered: after two, without end, since a robot must come back by itself.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._grant: Grant | None = None
        self._valid = False
        self._asked_ns: int | None = None
        self._not_before_ns: int | None = None
        self._last_sign_ns = 0
        self._in_doubt = False
        self._announced: tuple[int, bool] | None = None
        self._past: set[int] = set()
        self._refusal: Rejected | None = None

    @property
    def grant(self) -> Grant | None:
        """Return the grant in force; None while the robot must (re-)register."""
        with self._lock:
            return self._grant if self._valid else None

    @property
    def latest(self) -> Grant | None:
        """Return the newest grant, in force or not; answers to its requests may still come."""
        with self._lock:
            return self._grant

    @property
    def refusal(self) -> str:
        """Return why the server does not register this robot, nothing if it has not refused."""
        with self._lock:
            return '' if self._refusal is None else str(self._refusal)

    def was_ours(self, session: int) -> bool:
        """Return whether this robot has ever held a session."""
        with self._lock:
            return session in self._past

    def due(self, now_ns: int) -> bool:
        """Return whether to ask for registration, or for its renewal, now."""
        with self._lock:
            if self._asked_ns is not None:
                if now_ns - self._asked_ns < ANSWER_TIMEOUT_NS:
                    return False
                self._asked_ns = None
            if self._not_before_ns is not None and now_ns < self._not_before_ns:
                return False
            if not self._valid or self._grant is None or self._in_doubt:
                return True
            return now_ns - self._last_sign_ns > self._grant.lease_ns // 3

    def asked(self, now_ns: int) -> None:
        """Note that a registration is under way."""
        with self._lock:
            self._asked_ns = now_ns

    def sent(self, now_ns: int) -> None:
        """Note a sign of life: the server renews the lease with every observation."""
        with self._lock:
            self._last_sign_ns = now_ns

    def granted(self, grant: Grant, now_ns: int) -> None:
        """Take in what the server has granted."""
        with self._lock:
            self._grant, self._valid, self._in_doubt = grant, True, False
            self._refusal = None
            self._past.add(grant.session)
            self._asked_ns, self._not_before_ns = None, None
            self._last_sign_ns = now_ns

    def refused(self, refusal: Rejected, now_ns: int) -> None:
        """Note that the server does not register this robot."""
        with self._lock:
            self._valid, self._refusal = False, refusal
            self._asked_ns, self._not_before_ns = None, now_ns + ASK_AGAIN_NS

    def server_announced(self, epoch: int, *, ready: bool) -> None:
        """Take in the server's latched state: with another epoch the lease must be renewed."""
        with self._lock:
            if self._grant is None or epoch != self._grant.epoch:
                self._valid = False
                if ready and self._announced != (epoch, ready):
                    self._asked_ns, self._not_before_ns = None, None
            self._announced = (epoch, ready)

    def doubted(self) -> None:
        """Note that a request got no answer: the lease is renewed at once, requests go on."""
        with self._lock:
            self._in_doubt = True

    def unknown(self) -> None:
        """Note that the server does not know the session."""
        with self._lock:
            self._valid = False
