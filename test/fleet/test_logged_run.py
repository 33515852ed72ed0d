# SPDX-License-Identifier: Apache-2.0
"""The rows of a decision log are those that the simulator keeps of the same round."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.logged_run import recorded_run
from xinfer_ros.predict.audit import audit
from xinfer_ros.predict.run_record import Change
from xinfer_ros.sched.decision_log import LogPart
from xinfer_ros.sched.journal import JournalReader
from xinfer_ros.sched.log_files import DecisionLog
from xinfer_ros.sim.simulation import simulate

from .logged_rounds import logged_round, round_task


def test_rows_of_a_log_are_those_of_the_round(tmp_path: Path) -> None:
    run = recorded_run(logged_round(tmp_path, 'dynamic_batch'))
    task = round_task('dynamic_batch')
    kept = simulate(task.scenario(), task.calibration, task.settings, keep_transitions=True)
    assert run.transitions.tolist() == kept.transitions.tolist()
    assert (run.facts.policy, run.facts.model) == ('dynamic_batch', 'VLA-2B')
    sizes = run.transitions[run.transitions[:, 4] == Change.STARTED][:, [1, 3]]
    units, counts = np.unique(run.members[:, 0], return_counts=True)
    assert dict(zip(units.tolist(), counts.tolist(), strict=True)) == dict(sizes.tolist())
    assert set(run.members[:, 2]) == set(range(18))


def _from_the_middle(log: DecisionLog) -> LogPart:
    """Return the second half of a log of one part, as a part of its own."""
    (part,) = log.parts
    core = part.header.core()
    core.restore(part.state)
    calls = list(part.calls())
    half = len(calls) // 2
    for call in calls[:half]:
        call.make(core)
    state = core.snapshot()
    core.keep_journal(True)
    for call in calls[half:]:
        call.make(core)
    return replace(
        part, header=replace(part.header, part=5), state=state, pieces=(core.take_journal(),)
    )


def test_what_ran_where_the_log_begins_is_left_out_but_in_the_way(tmp_path: Path) -> None:
    log = logged_round(tmp_path, 'foresight')
    half = _from_the_middle(log)
    run = recorded_run(replace(log, parts=(log.parts[0], half)))  # something between is missing
    begins_ns = next(iter(JournalReader().read(half.pieces[0]))).now_ns
    assert run.from_ns == begins_ns
    early = run.transitions[run.transitions[:, 0] < begins_ns]
    assert len(early) > 0
    assert set(early[:, 4]) == {Change.STARTED}
    audited = audit(run.transitions, run.calibration, from_ns=run.from_ns)
    assert audited.left_out.early == len(early)


def test_log_whose_calls_contradict_each_other_is_refused(tmp_path: Path) -> None:
    log = logged_round(tmp_path, 'foresight')
    half = replace(_from_the_middle(log), state=log.parts[0].state)
    with pytest.raises(ConfigError, match=r'the log ends unit \d+, which it has not started'):
        recorded_run(replace(log, parts=(half,)))
