# SPDX-License-Identifier: Apache-2.0
"""The exception tree and the reason codes of the whole system."""

from enum import IntEnum


class Reason(IntEnum):
    """
    Why something was answered without actions, or refused; the constants of msg/ReasonCode.msg.

    The values are part of the wire contract: never renumber one.
    """

    OK = 0
    # The server's side of a request
    NOT_READY = 1
    ENGINE_RESTARTED = 2
    EXPIRED = 3
    SUPERSEDED = 4
    SHUTDOWN = 5
    UNKNOWN_SESSION = 6
    MODEL_FAILED = 7
    HUNG = 8
    OUT_OF_MEMORY = 9
    DEVICE_FAILED = 10
    # Refusals at registration
    DUPLICATE_ID = 20
    REJECTED_PROTOCOL = 21
    REJECTED_JOINTS = 22
    REJECTED_CAMERAS = 23
    REJECTED_HORIZON = 24
    REJECTED_SPACING = 25
    REJECTED_FLEET_FULL = 26
    REJECTED_NAME = 27
    # Refusals of an observation
    REJECTED_STATE = 40
    REJECTED_IMAGE = 41
    REJECTED_BUDGET = 42
    REJECTED_LEFTOVER = 43
    REJECTED_COMMITMENT = 44
    REJECTED_INSTRUCTION = 45
    REJECTED_NO_SLOT = 46
    REJECTED_ORDER = 47
    REJECTED_PERIOD = 48
    REJECTED_CAPACITY = 49
    MISSING_CAMERA = 50
    UNSTAMPED = 51
    # Refusals of a chunk, at the server's egress or at the executor's ingress
    REJECTED_ROWS = 60
    REJECTED_COLUMNS = 61
    STALE_CHUNK = 62
    DUPLICATE_CHUNK = 63
    WRONG_SESSION = 64
    WRONG_EPISODE = 65
    WRONG_EPOCH = 66
    REJECTED_LIMITS = 67
    # The brain tier: episodes of LLM agents
    BRAIN_UNAVAILABLE = 80
    NOT_ADMITTED = 81
    UNKNOWN_EPISODE = 82
    REJECTED_EPISODE = 83
    LEASE_EXPIRED = 84
    # A code that this version does not know
    UNKNOWN_REASON = 99

    @property
    def is_lasting(self) -> bool:
        """Return whether it is a refusal at registration that somebody has to mend, not time."""
        return self in (
            Reason.REJECTED_PROTOCOL,
            Reason.REJECTED_JOINTS,
            Reason.REJECTED_CAMERAS,
            Reason.REJECTED_HORIZON,
            Reason.REJECTED_SPACING,
            Reason.REJECTED_NAME,
        )

    @classmethod
    def of(cls, code: int) -> 'Reason':
        """Return the reason of a code on the wire, UNKNOWN_REASON if it is none of ours."""
        return cls(code) if code in cls._value2member_map_ else cls.UNKNOWN_REASON


class XinferError(Exception):
    """Root of every error that this package raises on purpose."""


class ConfigError(XinferError):
    """The user can mend it: a file, key, value or argument is wrong. Raised at start."""


class ModelError(XinferError):
    """A model can't be loaded or has failed."""


class Rejected(XinferError):
    """
    An expected refusal.

    :param reason: why
    :param detail: what was found, what is allowed and what to do, for a person
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f'{reason.name}: {detail}')
        self.reason = reason
        self.detail = detail
