# SPDX-License-Identifier: Apache-2.0
"""The compiled scheduler and simulator; its sources lie in src/."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

DecisionTuple = tuple[float, int, int, int, int, float, float, float, float]
CountersTuple = tuple[tuple[int, ...], int, int]

class Device:
    """One calibrated device; see predict/calibration.py."""

    def __init__(
        self,
        *,
        work_ms: Sequence[float],
        overhead_ms: Sequence[float],
        output_ms: float,
        front_end_ms: float,
        batch_work: Sequence[Sequence[float]],
        infer_ms: Sequence[float],
        rates: npt.NDArray[np.float64],
    ) -> None: ...

class Core:
    """A scheduling policy and its state; see sched/core.py."""

    def __init__(
        self, device: Device, limits: Sequence[int], policy: str, settings: Mapping[str, Any]
    ) -> None: ...
    def announce(
        self, *, now_ns: int, robot: int, arrival_ns: int, budget_ns: int, period_ns: int
    ) -> None: ...
    def observe(
        self,
        *,
        now_ns: int,
        robot: int,
        executed_steps: int,
        leftover_steps: int,
        horizon_steps: int,
        spacing_ns: int,
    ) -> None: ...
    def submit(
        self,
        *,
        now_ns: int,
        key: int,
        robot: int,
        arrival_ns: int,
        budget_ns: int,
        reserved_ns: int,
        period_ns: int,
    ) -> None: ...
    def release(self, now_ns: int) -> list[int]: ...
    def dispatch(self, now_ns: int) -> list[tuple[int, int, tuple[int, ...]]]: ...
    def complete(self, now_ns: int, number: int) -> list[int]: ...
    def pace_ns(self, robot: int) -> int: ...
    def cancel(self, now_ns: int, key: int) -> bool: ...
    def withdraw(self, now_ns: int, number: int) -> None: ...
    def set_budget(self, key: int, budget_ns: int) -> None: ...
    def num_protected(self) -> int: ...
    def counters(self) -> CountersTuple: ...
    def live_requests(self) -> list[tuple[int, int, int, int, int, int, int]]: ...
    def slack_ms(self, key: int) -> float: ...
    def foreseen_ends_ns(self) -> dict[int, int]: ...
    def keep_journal(self, keep: bool) -> None: ...
    def take_journal(self) -> bytes: ...
    def snapshot(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def keep_log(self, keep: bool) -> None: ...
    def take_decisions(self) -> list[DecisionTuple]: ...
    @property
    def correction(self) -> list[float]: ...
    @property
    def mirror_error(self) -> float: ...

def read_journal(journal: bytes, last_ns: int) -> tuple[list[tuple[int, ...]], int]: ...
def simulate(
    *,
    core: Core,
    start_ns: npt.NDArray[np.int64],
    quota: npt.NDArray[np.int64],
    budget_ns: npt.NDArray[np.int64],
    draws: npt.NDArray[np.float64],
    true_rates: npt.NDArray[np.float64],
    timing: Mapping[str, int],
    keep_transitions: bool,
    robot_time: Mapping[str, Any] | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], int]: ...
