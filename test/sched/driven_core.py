# SPDX-License-Identifier: Apache-2.0
"""A scheduler core driven by hand, in ms, on a device whose times can be worked out by hand."""

from collections.abc import Callable, Sequence

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Counts
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.decision import Decision
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sched.settings_base import PolicySettings

MS = 1_000_000
Make = Callable[[Calibration, PolicySettings], SchedulerCore]
Launch = tuple[Stage, tuple[int, ...]]


def sharing_device(bound: Counts = (3, 3, 3)) -> Calibration:
    """
    Return a device where ``rho(n) = 1 / (1 + sum(n))``: every other unit costs a share.

    Alone a request takes 2 + 4, 1 + 8, 1 + 12 and 3 ms: 31.
    """
    shape = tuple(count + 1 for count in bound)
    return Calibration(
        name='sharing',
        device='none',
        model='none',
        source='made up',
        work_ms=(4.0, 8.0, 12.0),
        overhead_ms=(2.0, 1.0, 1.0),
        output_ms=3.0,
        front_end_ms=6.0,
        reserved_ms=4.0,
        rates=np.ones((3, *shape)) / (1.0 + np.indices(shape).sum(axis=0)),
    )


class DrivenCore:
    """
    A core that keeps its decisions; units are named by the first of their requests.

    :param make: the compiled or the readable one
    :param changes: settings that differ from the defaults
    """

    def __init__(
        self, make: Make, policy: str, device: Calibration | None = None, **changes: object
    ) -> None:
        device = device or sharing_device()
        self._core = make(device, policy_settings(policy, device, **changes))
        self._core.keep_log(True)
        self._number: dict[int, int] = {}

    def announce(self, at_ms: float, robot: int, budget_ms: float) -> None:
        """Let a request arrive that is still prepared."""
        self._core.announce(
            now_ns=round(at_ms * MS),
            robot=robot,
            arrival_ns=round(at_ms * MS),
            budget_ns=round(budget_ms * MS),
            period_ns=180 * MS,
        )

    def observe(
        self, at_ms: float, robot: int, executed: int, leftover: int, horizon: int = 10
    ) -> None:
        """Let a robot with a row every 30 ms tell of its action queue."""
        self._core.observe(
            now_ns=round(at_ms * MS),
            robot=robot,
            executed_steps=executed,
            leftover_steps=leftover,
            horizon_steps=horizon,
            spacing_ns=30 * MS,
        )

    def submit(self, at_ms: float, key: int, budget_ms: float, robot: int | None = None) -> None:
        """Let a request arrive and be registered at once; of a robot of its own by default."""
        self._core.submit(
            now_ns=round(at_ms * MS),
            key=key,
            robot=key if robot is None else robot,
            arrival_ns=round(at_ms * MS),
            budget_ns=round(budget_ms * MS),
            reserved_ns=4 * MS,
            period_ns=180 * MS,
        )

    def release(self, at_ms: float) -> Sequence[int]:
        """Return the requests that were held back and leave now."""
        return self._core.release(round(at_ms * MS))

    def dispatch(self, at_ms: float) -> list[Launch]:
        """Return what starts."""
        started = []
        for number, stage, keys in self._core.dispatch(round(at_ms * MS)):
            self._number[keys[0]] = number
            started.append((Stage(stage), tuple(keys)))
        return started

    def complete(self, at_ms: float, key: int) -> Sequence[int]:
        """End the unit of a request; return the requests that are done."""
        return self._core.complete(round(at_ms * MS), self._number.pop(key))

    def withdraw(self, at_ms: float, key: int) -> None:
        """Let the unit of a request fail."""
        self._core.withdraw(round(at_ms * MS), self._number.pop(key))

    @property
    def mirror_error(self) -> float:
        """Return the mean error of foreseen executed steps."""
        return self._core.mirror_error

    def decisions(self) -> list[Decision]:
        """Return the decisions since the last call."""
        return [Decision.of(decision) for decision in self._core.take_decisions()]
