# SPDX-License-Identifier: Apache-2.0
"""How something is, in one line: what an operator must know first."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad it is; the levels of diagnostic_msgs. STALE is never said: a report is new."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    How a robot or the server is.

    :param text: for a person
    """

    level: Level
    text: str
