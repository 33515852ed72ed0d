# SPDX-License-Identifier: Apache-2.0
"""A run is written down in bounded memory, and read back or refused."""

from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.core.request import Request, Unit
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.audit import audit
from xinfer_ros.predict.run_record import (
    Change,
    RunFacts,
    RunRecorder,
    check_run_file,
    load_run,
)

from .devices import sharing_device

FACTS = RunFacts(policy='foresight', model='tiny', date='2026-01-31')
MS = 1_000_000


def _unit(number: int, stage: Stage, *robots: int) -> Unit:
    requests = tuple(
        Request(
            key=100 * robot + number, robot=robot, slot=robot, arrival_ns=0, budget_ns=1,
            reserved_ns=0, period_ns=1,
        )
        for robot in robots
    )  # fmt: skip
    return Unit(number=number, stage=stage, requests=requests)


def _recorder(capacity: int = 100) -> RunRecorder:
    device = sharing_device(batch_work=((1.0, 1.5), (1.0,), (1.0,)))
    return RunRecorder(device, FACTS, capacity)


def test_units_and_their_requests_survive_a_file(tmp_path: Path) -> None:
    recorder = _recorder()
    both, one = _unit(1, Stage.VIT, 3, 4), _unit(2, Stage.PREFILL, 5)
    recorder.started(both, 10 * MS)
    recorder.started(one, 11 * MS)
    recorder.ended(both, 20 * MS, good=True)
    recorder.ended(one, 21 * MS, good=False)
    recorder.save(tmp_path / 'run.npz')
    run = load_run(tmp_path / 'run.npz')
    assert run.transitions.tolist() == [
        [10 * MS, 1, Stage.VIT, 2, Change.STARTED],
        [11 * MS, 2, Stage.PREFILL, 1, Change.STARTED],
        [20 * MS, 1, Stage.VIT, 2, Change.ENDED],
        [21 * MS, 2, Stage.PREFILL, 1, Change.FAILED],
    ]
    assert run.members.tolist() == [[1, 301, 3], [1, 401, 4], [2, 502, 5]]
    assert run.facts == FACTS
    assert run.from_ns == 10 * MS
    assert run.calibration.batch_work == ((1.0, 1.5), (1.0,), (1.0,))
    assert run.calibration.work_ms == sharing_device().work_ms


def test_no_more_is_kept_than_the_capacity_and_what_ran_then() -> None:
    """
    Of 40 units one after the other, beside one that lasts, the newest six rows are kept.

    Before them stands the start of the unit that lasts: it is in the way of the others.
    """
    recorder = _recorder(capacity=6)
    lasting = _unit(1, Stage.ACTION, 9)
    recorder.started(lasting, 0)
    for number in range(2, 42):
        recorder.started(_unit(number, Stage.VIT, 1), number * 10 * MS)
        recorder.ended(_unit(number, Stage.VIT, 1), number * 10 * MS + 5 * MS, good=True)
    run = recorder.run()
    assert run.transitions[:, 1].tolist() == [1, 39, 39, 40, 40, 41, 41]
    assert (np.diff(run.transitions[:, 0]) >= 0).all()
    assert run.from_ns == 385 * MS
    assert set(run.members[:, 0]) == {39, 40, 41}
    result = audit(run.transitions, run.calibration, from_ns=run.from_ns)
    assert result.left_out.early == 1
    assert set(result.unit) == {39, 40, 41}


def test_unit_whose_start_is_gone_is_told_of_until_its_end_is_gone_too() -> None:
    recorder = _recorder(capacity=2)
    for number in (1, 2):
        recorder.started(_unit(number, Stage.VIT, number), number)
    recorder.ended(_unit(1, Stage.VIT, 1), 3, good=True)
    assert recorder.run().transitions[:, 1].tolist() == [1, 2, 1]
    recorder.ended(_unit(2, Stage.VIT, 2), 4, good=False)
    assert recorder.run().transitions[:, 1].tolist() == [1, 2, 1, 2]
    recorder.started(_unit(3, Stage.VIT, 3), 5)
    assert recorder.run().transitions[:, 1].tolist() == [2, 2, 3]


def test_empty_run_is_a_run(tmp_path: Path) -> None:
    _recorder().save(tmp_path / 'run.npz')
    run = load_run(tmp_path / 'run.npz')
    assert len(run.transitions) == len(run.members) == 0


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'none\.npz cannot be read: No such file'):
        load_run(tmp_path / 'none.npz')
    (tmp_path / 'text.npz').write_text('no run')
    np.savez(tmp_path / 'other.npz', x=np.zeros(3))
    np.save(tmp_path / 'array.npy', np.zeros(3))
    for name in ('text.npz', 'other.npz', 'array.npy'):
        with pytest.raises(ConfigError, match=f'{name} is not a recorded run; .*record_run'):
            load_run(tmp_path / name)


@pytest.mark.parametrize(
    'rows',
    [
        [(5, 1, 0, 1, 1), (4, 1, 0, 1, 0)],
        [(4, 1, 3, 1, 1)],
        [(4, 1, 0, 0, 1)],
        [(4, 1, 0, 1, 2)],
        [(4, 1, 0, 1, 0)],
        [(4, 1, 0, 1, 1), (5, 1, 0, 1, 1)],
        [(4, 1, 0, 1, 1), (5, 1, 0, 1, 0), (6, 1, 0, 1, -1)],
    ],
    ids=('time', 'stage', 'count', 'change', 'no start', 'two starts', 'two ends'),
)
def test_damaged_run_is_refused_before_it_is_replayed(
    rows: list[tuple[int, ...]], tmp_path: Path
) -> None:
    _recorder().save(tmp_path / 'run.npz')
    with np.load(tmp_path / 'run.npz') as good:
        found = dict(good)
    found['transitions'] = np.array(rows, dtype=np.int64)
    np.savez(tmp_path / 'bad.npz', **found)
    with pytest.raises(ConfigError, match='contradict each other'):
        load_run(tmp_path / 'bad.npz')


def test_run_of_batches_that_a_calibration_does_not_know_is_refused() -> None:
    recorder = _recorder()
    recorder.started(_unit(1, Stage.VIT, 1, 2), 0)
    recorder.run().check_sizes(sharing_device(batch_work=((1.0, 1.5), (1.0,), (1.0,))))
    with pytest.raises(
        ConfigError, match='batches of 2 in VIT, calibration sharing knows up to 1'
    ):
        recorder.run().check_sizes(sharing_device())


def test_file_that_could_not_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    check_run_file(tmp_path / 'run.npz')
    with pytest.raises(ConfigError, match=r'must end with \.npz'):
        check_run_file(tmp_path / 'run.json')
    with pytest.raises(ConfigError, match='there is no folder /no/such: make it first'):
        check_run_file(Path('/no/such/run.npz'))
