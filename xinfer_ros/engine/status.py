# SPDX-License-Identifier: Apache-2.0
"""What the front end is told at its start, and what it says of itself."""

import threading
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

from xinfer_ros.config import ServerConfig
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import Reason
from xinfer_ros.predict.calibration import Calibration


class ServerPhase(IntEnum):
    """What the server is doing; the constants of msg/ServerState.msg."""

    STARTING = 0
    READY = 1
    STOPPED = 2
    ERROR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """
    What the server announces; fields as in msg/ServerState.msg.

    :param correction: work that units of each stage turn out to hold over the calibration's; in
        the diagnostics
    :param mirror_error: mean error of the executed steps that were foreseen of robots; in the
        diagnostics [steps]
    :param slots_used: slots of the engine in use, of ``num_slots``; in the fleet status
    """

    epoch: int
    phase: ServerPhase
    model: str
    num_robots: int
    max_robots: int
    engine_pid: int
    correction: tuple[float, float, float] = (1.0, 1.0, 1.0)
    mirror_error: float = 0.0
    slots_used: int = 0
    num_slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndSettings:
    """
    Settings of the front end; see config.ServerConfig.

    :param first_epoch: number of the first engine life; differs from those of earlier servers
    :param capacity_per_s: responses per second that robots are admitted for, None: no limit [1/s]
    :param overlap_preparation: whether pictures are prepared while the device computes
    """

    max_robots: int
    lease_ns: int
    reserved_ns: int
    first_epoch: int
    capacity_per_s: float | None = None
    overlap_preparation: bool = True

    @classmethod
    def from_config(
        cls, config: ServerConfig, first_epoch: int, calibration: Calibration
    ) -> 'FrontEndSettings':
        """Return the front end's part of the server's settings, in integer nanoseconds."""
        policy = EngineSettings(config).policy(calibration)
        capacity_per_s = config.admission_share * policy.capacity_per_ms(calibration) * 1e3
        return cls(
            max_robots=config.max_robots,
            lease_ns=round(config.lease_s * 1e9),
            reserved_ns=round(config.reserved_s * 1e9),
            first_epoch=first_epoch,
            capacity_per_s=capacity_per_s if config.admission == 'capacity' else None,
            overlap_preparation=config.overlap_preparation,
        )


class Tally:
    """Counts the answers of the server since its start, by reason; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answered: Counter[Reason] = Counter()

    def count(self, reason: Reason) -> None:
        """Count an answer."""
        with self._lock:
            self._answered[reason] += 1

    def answered(self) -> Counter[Reason]:
        """Return the number of answers by reason."""
        with self._lock:
            return self._answered.copy()
