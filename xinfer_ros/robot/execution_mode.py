# SPDX-License-Identifier: Apache-2.0
"""How chunks follow each other on a robot."""

from enum import Enum


class ExecutionMode(Enum):
    """
    How chunks follow each other; ``execution_mode`` of the executor's settings.

    RTC: a request tells the leftover and the commitment; the new chunk takes over at the handoff.
    ASYNC: the same without them, so that chunks know nothing of each other.
    SYNC: a request leaves when the queue is empty, and the robot waits for its chunk.
    ENSEMBLE: as ASYNC, but each row is the weighted mean of every chunk that covers its step.
    """

    RTC = 'rtc'
    ASYNC = 'async'
    SYNC = 'sync'
    ENSEMBLE = 'ensemble'
