# SPDX-License-Identifier: Apache-2.0
"""One round of one fleet on a scripted system, its load in real processes."""

import os
import sys
from pathlib import Path

import pytest

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.fleet.bench_plan import BenchPlan
from xinfer_ros.fleet.bench_run import BenchRun, LateGeneratorError
from xinfer_ros.fleet.bench_system import BenchFailedError
from xinfer_ros.robot.load_plan import Images
from xinfer_ros.sim.workload import make_workload

SCRIPT = Path(__file__).with_name('scripted_load.py')
PLAN = BenchPlan(
    robots=(3,),
    seeds=(1,),
    period_ns=50_000_000,
    workload=make_workload('constant:30'),
    warm_up_s=0.1,
    duration_s=0.4,
    episodes=('any',),
    keeps_pace=True,
    robots_per_process=2,
)


class ScriptedSystem:
    """A system without a server: this process stands for it."""

    name, images = 'scripted', 'raw'

    def __init__(self, *options: str, failure: str | None = None) -> None:
        self._options, self._failure = options, failure
        self.images: Images = 'raw'

    def start(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def pids(self) -> tuple[int, ...]:
        """Return this process."""
        return (os.getpid(),)

    def load_command(self, plan: Path) -> list[str]:
        """Return the scripted process."""
        return [sys.executable, str(SCRIPT), '--plan', str(plan), *self._options]

    def check(self) -> str | None:
        """Return the failure that was asked for."""
        return self._failure


def bench_run(said: list[str] | None = None) -> BenchRun:
    """Return a run that keeps what its processes say."""
    take = (said if said is not None else []).append
    return BenchRun(PLAN, 5.0, 7, {}, MonotonicClock(), take)


def test_round_is_played_by_every_process() -> None:
    told: list[str] = []
    result = bench_run().measure(ScriptedSystem(), 3, 1, told.append)
    assert len(result.log) == 3 * 10
    assert result.record.p50_ms == 10.0
    assert result.record.requests >= 3
    assert (result.record.x_ms, result.record.images) == (5.0, 'raw')
    assert result.record.server_cpu_ms_per_request is not None
    assert any('measuring: 30 requests, 30 answers' in line for line in told)


def test_late_load_is_no_result() -> None:
    with pytest.raises(LateGeneratorError, match='nothing was measured'):
        bench_run().measure(ScriptedSystem('--late-ms', '6'), 3, 1, str)


def test_load_that_ends_says_its_last_words() -> None:
    said: list[str] = []
    with pytest.raises(BenchFailedError, match='ended with exit code 3: no such episode'):
        bench_run(said).measure(ScriptedSystem('--fail', 'no such episode'), 3, 1, str)
    assert said[0].endswith('no such episode')


def test_system_that_ends_ends_the_round() -> None:
    with pytest.raises(BenchFailedError, match='the server ended'):
        bench_run().measure(ScriptedSystem(failure='the server ended'), 3, 1, str)
