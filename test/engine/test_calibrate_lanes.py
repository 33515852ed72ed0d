# SPDX-License-Identifier: Apache-2.0
"""Real lanes under the calibration, and what is taken from a server's answers."""

from dataclasses import replace

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.chunk import ServerTimes
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate import measure
from xinfer_ros.engine.calibrate_check import check_calibration, served_identity
from xinfer_ros.engine.calibrate_lanes import ModelLanes
from xinfer_ros.engine.calibrate_plan import LoadPlan
from xinfer_ros.engine.calibrate_server import ServerShare
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.models.registry import echo_contract
from xinfer_ros.predict.calibration import load_calibration

PLAN = LoadPlan.of(tuple(Stage), (1, 1, 1), (1, 2, 2))


class TroubledModel(EchoModel):
    """
    Takes down its slots and largest batch; goes wrong in Prefill if told to.

    :param trouble: raised, or said of the first member if it is a refusal
    """

    def __init__(self, trouble: Exception | None = None) -> None:
        super().__init__(echo_contract())
        self._trouble = trouble
        self.slots: SlotArrays | None = None
        self.largest = [0, 0, 0]

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Keep the slots."""
        super().bind(slots, plan)
        self.slots, self.plan = slots, plan

    def run(self, stage: Stage, batch: Batch) -> dict[int, Rejected]:
        """Run a stage, or go wrong."""
        self.largest[stage] = max(self.largest[stage], len(batch.slot_ids))
        if stage is Stage.PREFILL and isinstance(self._trouble, Rejected):
            return {batch.slot_ids[0]: self._trouble}
        if stage is Stage.PREFILL and self._trouble is not None:
            raise self._trouble
        return super().run(stage, batch)


def _measure(model: TroubledModel) -> None:
    clock = MonotonicClock()
    lanes = ModelLanes(model, PLAN, clock)
    try:
        measure(lanes, clock, PLAN, rounds=1, seed=1)
    finally:
        lanes.close()


def test_model_is_measured_with_requests_that_have_a_leftover_and_a_commitment() -> None:
    model = TroubledModel()
    _measure(model)
    assert model.largest == [1, 2, 2]
    assert model.plan.max_batch == (1, 2, 2)
    assert model.slots is not None
    assert model.slots.num_slots == model.plan.num_states == PLAN.num_slots
    assert (model.slots.commitment_steps > 0).all()
    assert (
        model.slots.leftover_steps + model.slots.commitment_steps == model.contract.horizon
    ).all()
    assert (model.slots.instruction_bytes > 0).all()


def test_stage_that_fails_ends_the_measurement_with_its_name() -> None:
    with pytest.raises(ModelError, match='PREFILL has failed: out of order'):
        _measure(TroubledModel(ModelError('out of order')))


def test_stage_that_refuses_a_request_ends_the_measurement_with_its_words() -> None:
    refusal = Rejected(Reason.REJECTED_INSTRUCTION, 'it does not fit')
    with pytest.raises(ModelError, match=r'PREFILL of [12] requests: it does not fit'):
        _measure(TroubledModel(refusal))


def test_share_of_the_server_is_what_is_neither_waiting_nor_computing() -> None:
    """Preparation 2 ms, and 1 ms for two records, half of it after the last stage."""
    times = ServerTimes(
        decode_ns=2_000_000,
        queue_ns=500_000,
        vit_ns=4_000_000,
        prefill_ns=3_000_000,
        action_ns=8_000_000,
        server_ns=18_500_000,
    )
    late = replace(times, server_ns=99_000_000)
    share = ServerShare.of([times, times, late])
    assert share == ServerShare(front_end_ms=2.5, output_ms=0.5)


def test_server_identity_tells_type_and_threads() -> None:
    config = ServerConfig(model='echo', device='cpu', torch_threads=2, rtc_jacobian='vjp')
    identity = served_identity(config, echo_contract())
    assert identity.setting == 'echo --rtc-jacobian vjp --torch-threads 2'
    assert identity.model == 'echo'
    assert identity.model_facts.endswith('float32, guidance by vjp, 2 threads a stage')
    assert 'core' in identity.device


def test_server_refuses_a_named_calibration_of_another_model_and_warns_if_told_to() -> None:
    config = ServerConfig(model='echo', device='cpu', calibration='paper')
    paper = load_calibration('paper')
    with pytest.raises(ConfigError, match='calibration paper is of model VLA-2B on the GPU of'):
        check_calibration(config, paper, echo_contract())
    lenient = replace(config, calibration_mismatch='warn')
    assert 'is of model VLA-2B' in check_calibration(lenient, paper, echo_contract())


def test_server_of_a_table_model_takes_any_calibration() -> None:
    config = ServerConfig(model='table:paper', calibration='paper')
    assert check_calibration(config, load_calibration('paper'), echo_contract()) == ''


def test_shipped_calibration_that_nobody_named_is_an_estimate_and_a_named_one_must_match() -> None:
    shipped = load_calibration('echo')
    elsewhere = replace(shipped, device='another machine')
    unnamed, named = ServerConfig(model='echo'), ServerConfig(model='echo', calibration='echo')
    assert 'another machine' in check_calibration(unnamed, elsewhere, echo_contract())
    with pytest.raises(ConfigError, match='another machine'):
        check_calibration(named, elsewhere, echo_contract())


def test_advice_names_what_the_calibration_must_be_made_with() -> None:
    """Else who follows it makes the one that was refused."""
    config = ServerConfig(
        model='echo',
        calibration='echo',
        rtc_jacobian='vjp',
        model_dtype='float32',
        torch_threads=2,
    )
    elsewhere = replace(load_calibration('echo'), device='another machine')
    with pytest.raises(
        ConfigError,
        match='--model echo --rtc-jacobian vjp --dtype float32 --torch-threads 2 --output',
    ):
        check_calibration(config, elsewhere, echo_contract())
