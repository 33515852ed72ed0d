# SPDX-License-Identifier: Apache-2.0
"""One run of a fleet, from its start to its verdict."""

import io
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from xinfer_ros.errors import Reason, XinferError
from xinfer_ros.fleet.run import RESUME_LIMIT_S, FleetRun, RunFailedError, RunPlan

from .scripted_fleet import ScriptedFleet, Victim

ROBOTS = ('r0', 'r1', 'r2')


@pytest.fixture
def victim() -> Iterator[Victim]:
    """Return a process that may be killed."""
    process = Victim()
    yield process
    process.close()


class Observed:
    """A run with its fleet and what it prints."""

    def __init__(self, terminal: bool = False, **changes: Any) -> None:
        self.fleet = ScriptedFleet(ROBOTS)
        plan = RunPlan(
            **{
                'robots': ROBOTS,
                'duration_s': 20.0,
                'warm_up_s': 3.0,
                'start_timeout_s': 60.0,
                'allowed_starved_share': 0.0,
                'kill': '',
                'kill_at_s': 4.0,
                **changes,
            }
        )
        self._out = io.StringIO()
        console = Console(file=self._out, width=200, force_terminal=terminal)
        self._run = FleetRun(plan, self.fleet, self.fleet, self.fleet.clock, console)

    def run(self) -> list[str]:
        """Run to the end."""
        return self._run.run()

    @property
    def text(self) -> str:
        """Return what was printed."""
        return self._out.getvalue()

    @property
    def words(self) -> str:
        """Return what was printed on one line; the table wraps its title."""
        return ' '.join(self.text.split())


def test_healthy_run_has_no_faults_and_prints_a_summary() -> None:
    observed = Observed()
    assert observed.run() == []
    assert '3 robots, 20 s' in observed.words
    assert all(robot in observed.text for robot in ROBOTS)
    assert '100.00 % on time, 0 unanswered, 0 misaddressed' in observed.text


@pytest.mark.parametrize('terminal', [False, True])
def test_run_lasts_as_long_as_planned(terminal: bool) -> None:
    observed = Observed(terminal)
    observed.run()
    assert observed.fleet.second == pytest.approx(2 + 3 + 20, abs=1.5)


def test_without_a_terminal_a_line_comes_every_few_seconds() -> None:
    observed = Observed()
    observed.run()
    lines = [line for line in observed.text.splitlines() if 'robots heard' in line]
    assert 4 <= len(lines) <= 6
    assert '3 robots heard' in lines[-1]


def test_starvation_before_the_run_counts_is_forgiven() -> None:
    observed = Observed()
    observed.fleet.at(2.0, lambda fleet: fleet.starving.add('r1'))
    observed.fleet.at(4.0, lambda fleet: fleet.starving.clear())
    assert observed.run() == []


def test_starvation_while_the_run_counts_is_a_fault() -> None:
    observed = Observed()
    observed.fleet.at(10.0, lambda fleet: fleet.starving.add('r1'))
    observed.fleet.at(11.0, lambda fleet: fleet.starving.clear())
    (fault,) = observed.run()
    assert 'control ticks had no valid action' in fault


def test_allowed_share_of_starvation_is_no_fault() -> None:
    observed = Observed(allowed_starved_share=0.05)
    observed.fleet.at(10.0, lambda fleet: fleet.starving.add('r1'))
    observed.fleet.at(11.0, lambda fleet: fleet.starving.clear())
    assert observed.run() == []


def test_robot_that_falls_silent_is_a_fault() -> None:
    """Its last report would look as good as ever."""
    observed = Observed()
    observed.fleet.at(12.0, lambda fleet: fleet.never_moves('r1'))
    faults = observed.run()
    assert len(faults) == 1
    assert faults[0].startswith('r1 has not been heard for')


def test_unanswered_request_is_a_fault() -> None:
    observed = Observed()
    observed.fleet.at(10.0, lambda fleet: fleet.change('r2', unanswered=1))
    assert observed.run() == ['1 requests got no answer']


@pytest.mark.parametrize(('ready', 'words'), [(True, 'is ready'), (False, 'is not ready')])
def test_robot_that_does_not_move_in_time_fails_the_run_by_name(ready: bool, words: str) -> None:
    observed = Observed(start_timeout_s=8.0)
    observed.fleet.never_moves('r1')
    observed.fleet.server_is_ready = ready
    with pytest.raises(RunFailedError) as caught:
        observed.run()
    assert str(caught.value) == f'r1 did not move within 8 s; the server {words}'
    assert observed.fleet.second == pytest.approx(8, abs=1)


def test_robot_that_the_server_refuses_for_good_fails_the_run_at_once() -> None:
    observed = Observed()
    observed.fleet.refuse('r1', Reason.REJECTED_FLEET_FULL, 'all slots are in use')
    observed.fleet.at(
        1.0, lambda fleet: fleet.refuse('r2', Reason.REJECTED_JOINTS, 'no joint elbow')
    )
    with pytest.raises(RunFailedError) as caught:
        observed.run()
    assert str(caught.value) == 'the server refuses r2: REJECTED_JOINTS: no joint elbow'
    assert observed.fleet.second == pytest.approx(1, abs=1)


@pytest.mark.parametrize('second', [1.0, 3.0, 15.0])
def test_death_of_a_process_fails_the_run_at_once(second: float) -> None:
    observed = Observed()

    def die(fleet: ScriptedFleet) -> None:
        fleet.failure = 'robots-1 ended with exit code 1'

    observed.fleet.at(second, die)
    with pytest.raises(RunFailedError, match='robots-1 ended with exit code 1'):
        observed.run()
    assert observed.fleet.second == pytest.approx(second, abs=0.6)


def _outage(fleet: ScriptedFleet, begin_s: float, ready_s: float, resume_s: float) -> None:
    """Script what a kill does: no motion, another epoch when ready, motion again."""

    def begin(fleet: ScriptedFleet) -> None:
        fleet.starving |= set(ROBOTS)
        fleet.server_is_ready = False

    def ready(fleet: ScriptedFleet) -> None:
        fleet.epoch, fleet.server_is_ready = fleet.epoch + 1, True

    fleet.at(begin_s, begin)
    fleet.at(ready_s, ready)
    fleet.at(resume_s, lambda fleet: fleet.starving.clear())


@pytest.mark.parametrize('kill', ['server', 'engine'])
def test_killed_process_is_recovered_from(victim: Victim, kill: str) -> None:
    """SL-02: SIGKILL, a new epoch, and every robot moves again in time."""
    observed = Observed(kill=kill)
    observed.fleet.server_pid = observed.fleet.engine_pid = victim.pid
    _outage(observed.fleet, 10.0, 11.0, 12.5)
    assert observed.run() == []
    assert victim.was_killed
    assert f'killing the {kill} process {victim.pid} (SIGKILL)' in observed.text
    assert f'{kill} killed; ready again after' in observed.text
    assert 'under a new epoch' in observed.text


def test_nothing_is_killed_unless_asked_for(victim: Victim) -> None:
    observed = Observed()
    observed.fleet.server_pid = observed.fleet.engine_pid = victim.pid
    assert observed.run() == []
    assert victim.is_alive


def test_robot_that_stays_behind_after_the_kill_is_named(victim: Victim) -> None:
    observed = Observed(kill='server')
    observed.fleet.server_pid = victim.pid
    _outage(observed.fleet, 10.0, 11.0, 12.0)
    observed.fleet.at(12.0, lambda fleet: fleet.starving.add('r2'))
    assert observed.run() == ['r2 did not come back after the kill']


def test_server_that_never_returns_is_a_fault(victim: Victim) -> None:
    observed = Observed(kill='server')
    observed.fleet.server_pid = victim.pid
    _outage(observed.fleet, 10.0, 1000.0, 1000.0)
    assert observed.run() == ['r0, r1, r2 did not come back after the kill']


def test_motion_under_the_old_epoch_is_no_recovery(victim: Victim) -> None:
    """SL-02: rows that were still queued do not count."""
    observed = Observed(kill='server')
    observed.fleet.server_pid = victim.pid
    assert observed.run() == ['r0, r1, r2 did not come back after the kill']


def test_rows_left_over_from_the_old_epoch_are_no_recovery(victim: Victim) -> None:
    """SL-02: a robot counts when it moves under the new epoch."""
    observed = Observed(kill='server')
    observed.fleet.server_pid = victim.pid
    _outage(observed.fleet, 10.0, 10.5, 10.5)
    observed.fleet.at(9.5, lambda fleet: fleet.behind.add('r1'))
    assert observed.run() == ['r1 did not come back after the kill']


def test_motion_that_resumes_too_late_is_a_fault(victim: Victim) -> None:
    """SL-02: within 5 s after the server is back."""
    observed = Observed(kill='server')
    observed.fleet.server_pid = victim.pid
    _outage(observed.fleet, 10.0, 11.0, 11.0 + RESUME_LIMIT_S + 1.5)
    (fault,) = observed.run()
    assert 'motion resumed' in fault
    assert f'{RESUME_LIMIT_S:.1f}' in fault


def test_kill_after_the_end_of_the_run_is_refused(victim: Victim) -> None:
    """`xinfer fleet --kill engine --duration 3`: the kill, at 4 s by default, would never come."""
    observed = Observed(kill='engine', duration_s=3.0)
    observed.fleet.engine_pid = victim.pid
    with pytest.raises(XinferError):
        observed.run()
    assert victim.is_alive


def test_engine_whose_process_id_is_unknown_is_not_killed() -> None:
    """
    While an engine starts, its process id is 0; SIGKILL to 0 kills the caller's whole group.

    So this runs in a process and group of its own.
    """
    script = """
        from fleet.test_run import Observed
        from xinfer_ros.errors import XinferError
        observed = Observed(kill='engine')
        assert observed.fleet.engine_pid == 0
        try:
            observed.run()
        except XinferError as error:
            print('refused:', error)
    """
    child = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(script)],
        cwd=Path(__file__).parents[1],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
