# SPDX-License-Identifier: Apache-2.0
"""Health by progress: hung stages, lost devices, full memory, and how robots are told."""

import queue
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.request import Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.engine_life import EngineLife, EngineLimits, EngineWatch
from xinfer_ros.engine.health import EngineFailure, ExitCode, Fault, HangWatch, told_by
from xinfer_ros.engine.lane import UnitEnd
from xinfer_ros.engine.records import Beat, Done, Dropped, Submit
from xinfer_ros.engine.seen import Timeline
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.setting import settings_from

from .scripted_engine import Bench
from .simulated_fleet import MS, S, SimulatedFleet
from .test_pipeline import SLOT
from .test_pipeline import Bench as PipelineBench

PAPER = load_calibration('paper')
TIMEOUT_S = 60.0


def test_robots_are_told_within_two_seconds_that_a_stage_hangs_and_the_engine_ends_at_ten() -> (
    None
):
    """SL-04: status ERROR and HUNG within 2 s, the process ends with a code of its own at 10 s."""
    fleet = SimulatedFleet(PAPER)
    members = [fleet.join(budget_ms=400, after_ms=40.0 * index) for index in range(4)]
    fleet.time.run(3.0)
    assert fleet.front_end.status().phase is ServerPhase.READY
    fleet.engine.device.stalled = True
    stalled_ns = fleet.time.clock.now_ns()
    fleet.time.run(2.0)
    assert fleet.front_end.status().phase is ServerPhase.ERROR
    for member in members:
        told = [o for o in member.outcomes if o.reason is Reason.HUNG]
        assert told, 'every robot is told'
        assert told[0].answered_ns - stalled_ns <= 2 * S
    with pytest.raises(EngineFailure, match='has not ended within 10 s') as ended:
        fleet.time.run(9.0)
    assert ended.value.code is ExitCode.HUNG
    assert fleet.time.clock.now_ns() - stalled_ns <= 10.6 * S


def test_stage_that_gets_on_after_all_is_served_on() -> None:
    fleet = SimulatedFleet(PAPER)
    member = fleet.join(budget_ms=400)
    fleet.time.run(1.0)
    fleet.engine.device.stalled = True
    fleet.time.run(3.0)
    assert fleet.front_end.status().phase is ServerPhase.ERROR
    fleet.engine.device.go_on()
    fleet.time.run(2.0)
    assert fleet.front_end.status().phase is ServerPhase.READY
    late = member.since(fleet.time.clock.now_ns() - S)
    assert late
    assert {o.reason for o in late} == {Reason.OK}


def test_robot_may_renew_its_registration_while_a_stage_hangs() -> None:
    """Else its lease would end with the engine, for nothing that it has done."""
    bench = Bench()
    bench.engine.become_ready(1)
    robot = bench.robot('a')
    bench.ask(robot, 1)
    bench.engine.hang(True)
    assert bench.reasons() == ['HUNG']
    assert bench.robot('a') is robot
    bench.ask(robot, 2)
    assert bench.reasons() == ['HUNG', 'HUNG']
    assert bench.statuses[-1].phase is ServerPhase.ERROR
    bench.engine.hang(False)
    bench.ask(robot, 3)
    assert len(bench.engine.submitted()) == 2
    assert bench.statuses[-1].phase is ServerPhase.READY


def test_hang_of_an_engine_that_is_gone_is_of_no_consequence() -> None:
    bench = Bench()
    bench.engine.become_ready(1)
    bench.engine.hang(True)
    bench.engine.die(2)
    bench.engine.become_ready(2)
    assert bench.statuses[-1].phase is ServerPhase.READY


def test_hang_watch_tells_each_change_once() -> None:
    watch = HangWatch(10)
    assert [watch.has_changed(age) for age in (0, 10, 11, 12, 3, 11)] == [
        False, False, True, False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize('value', [-1.0, 0.0, 2.0**31])
@pytest.mark.parametrize(
    'key', ['unit_timeout_s', 'hung_after_s', 'engine_silence_s', 'engine_start_timeout_s']
)
def test_time_out_that_can_not_be_meant_is_refused_at_start(key: str, value: float) -> None:
    """SL-04: none of them means to wait for ever."""
    with pytest.raises(ConfigError, match=f'{key} is {value}'):
        settings_from(ServerConfig, {key: value}, {})


def test_slow_stages_are_not_taken_for_hung_but_a_hung_one_is_told_before_the_end() -> None:
    """SL-04 on a slow device; batches and neighbours make a unit slower."""
    settings = EngineSettings(ServerConfig(calibration='paper', unit_timeout_s=60.0))
    assert settings.hung_ns(PAPER) == 1.5 * S
    slow = replace(PAPER, work_ms=(10.0, 100.0, 20.0))
    neighbours = settings.hung_ns(slow)
    assert neighbours == pytest.approx(2 * S / PAPER.rates[1].min(), rel=1e-6)
    batches = replace(slow, batch_work=((1.0,), (1.0, 1.5), (1.0,)))
    assert settings.hung_ns(batches) == pytest.approx(1.5 * neighbours)
    told = EngineSettings(ServerConfig(calibration='paper', unit_timeout_s=4.0)).hung_ns(slow)
    assert told == 2 * S


def test_time_out_that_usual_work_would_exceed_is_refused_at_start() -> None:
    slow = replace(PAPER, work_ms=(400.0, 900.0, 1200.0))
    settings = EngineSettings(ServerConfig(calibration='paper'))
    with pytest.raises(ConfigError, match=r'unit_timeout_s is 10, but a unit takes up to 6.51 s'):
        settings.hung_ns(slow)


def _through(bench: PipelineBench, key: int, failing: Stage, **changes: Any) -> None:
    """Let a request pass its stages, one of which ends as it is told."""
    bench.submit(key, key * S)
    for stage in Stage:
        unit = bench.issued[-1]
        assert unit.stage is stage
        how = changes if stage is failing else {}
        now_ns = key * S + (stage + 1) * MS
        bench.pipeline.step(UnitEnd(unit=unit, started_ns=key * S, ended_ns=now_ns, **how), now_ns)
        if how:
            return


def _no_memory(key: int) -> dict[str, Any]:
    return {'refused': {SLOT + key: Rejected(Reason.OUT_OF_MEMORY, 'full')}}


@pytest.mark.parametrize('stage', Stage)
def test_three_units_of_a_stage_in_a_row_without_memory_end_the_process(stage: Stage) -> None:
    """Whatever the stages before it do: they go well all the time."""
    bench = PipelineBench()
    _through(bench, 1, stage, **_no_memory(1))
    _through(bench, 2, stage, **_no_memory(2))
    _through(bench, 3, stage)  # one that fits begins the count anew
    _through(bench, 4, stage, **_no_memory(4))
    _through(bench, 5, stage, **_no_memory(5))
    with pytest.raises(EngineFailure, match=f'3 units of {stage.name} in a row') as ended:
        _through(bench, 6, stage, **_no_memory(6))
    assert ended.value.code is ExitCode.OUT_OF_MEMORY
    reasons = {r.reason for r in bench.results() if isinstance(r, Dropped)}
    assert reasons == {Reason.OUT_OF_MEMORY}


@pytest.mark.parametrize('stage', Stage)
def test_five_units_of_a_stage_in_a_row_that_fail_end_the_process(stage: Stage) -> None:
    bench = PipelineBench()
    for key in range(1, 5):
        _through(bench, key, stage, error=RuntimeError('broken'))
    with pytest.raises(EngineFailure, match=f'5 units of {stage.name} in a row') as ended:
        _through(bench, 5, stage, error=RuntimeError('broken'))
    assert ended.value.code is ExitCode.MODEL_FAILS


def test_lost_device_ends_the_process_at_once_and_its_robots_are_told() -> None:
    bench = PipelineBench()
    with pytest.raises(EngineFailure, match='the device is lost: CUDA error') as ended:
        _through(bench, 1, Stage.VIT, error=RuntimeError('CUDA error'), fault=Fault.DEVICE_LOST)
    assert ended.value.code is ExitCode.DEVICE_LOST
    (dropped,) = bench.results()
    assert isinstance(dropped, Dropped)
    assert dropped.reason is Reason.DEVICE_FAILED


@pytest.mark.parametrize(
    ('returncode', 'text'),
    [
        (None, 'it still runs'),
        (-9, 'signal 9'),
        (3, r'exit code 3, HUNG: a unit did not end in time'),
        (4, r'exit code 4, DEVICE_LOST: .* only a new process cures'),
        (5, r'exit code 5, OUT_OF_MEMORY: .*lower max_in_stages'),
        (77, 'exit code 77'),
    ],
)
def test_end_of_an_engine_is_told_with_what_to_do(returncode: int | None, text: str) -> None:
    assert re.fullmatch(f'{text}.*', told_by(returncode))


class Events:
    """Keeps what an engine watch tells."""

    def __init__(self) -> None:
        self.ready: queue.SimpleQueue[EngineLife] = queue.SimpleQueue()
        self.hangs: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def engine_ready(self, life: EngineLife) -> None:
        self.ready.put(life)

    def engine_told(self, life: EngineLife, record: Beat | Timeline) -> None:
        pass

    def engine_hangs(self, life: EngineLife, hangs: bool) -> None:
        self.hangs.put(hangs)

    def engine_ended(self, next_epoch: int) -> None:
        self.ended.put(next_epoch)

    def engine_record(self, life: EngineLife, record: Done | Dropped) -> None:
        raise AssertionError('nothing ever ends')


def test_engine_whose_stage_never_ends_exits_with_its_code_and_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SL-04, on a real process: told first, then ended."""
    monkeypatch.setenv('PYTHONPATH', str(Path(__file__).parent))
    config = ServerConfig(
        model='python:stuck_policy:make',
        calibration='echo',
        calibration_mismatch='warn',
        hung_after_s=0.3,
        unit_timeout_s=1.0,
        spare_engine=False,
    )
    settings, events = EngineSettings(config), Events()
    watch = EngineWatch(
        settings,
        1,
        EngineLimits.from_settings(settings, settings.device()),
        MonotonicClock(),
        lambda text: None,
    )
    watch.start(events)
    life = events.ready.get(timeout=TIMEOUT_S)
    request = Request(
        key=1, robot=0, slot=0, arrival_ns=MonotonicClock().now_ns(), budget_ns=S, reserved_ns=0,
        period_ns=S,
    )  # fmt: skip
    life.send(Submit(request=request))
    assert events.hangs.get(timeout=TIMEOUT_S) is True
    assert events.ended.get(timeout=TIMEOUT_S) == 2
    assert events.ready.get(timeout=TIMEOUT_S).epoch == 2
    watch.close()
    assert 'exit code 3, HUNG' in caplog.text
