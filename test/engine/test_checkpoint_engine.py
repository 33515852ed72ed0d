# SPDX-License-Identifier: Apache-2.0
"""A checkpoint in the published layout, served by a real engine process."""

import time
from pathlib import Path

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.request import Request
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.link import EngineLink
from xinfer_ros.engine.records import Beat, Done, Ready, Submit
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.models.adapter import write_sample
from xinfer_ros.models.registry import make_model

FOLDER = Path(__file__).parents[1] / 'data' / 'pi05_tiny'
TIMEOUT_S = 60.0
SLOT, COMMITMENT, LEFTOVER = 1, 4, 10


def _write(slots: SlotArrays) -> None:
    """Fill a slot with the same request, whoever it is for."""
    random = np.random.default_rng(5)
    write_sample(slots, SLOT, 'fold the towel')
    for image in slots.images:
        image[SLOT] = random.integers(0, 256, image[SLOT].shape)
    rows = random.uniform(-0.4, 0.4, slots.leftover[SLOT].shape)
    slots.leftover[SLOT] = rows
    slots.leftover[SLOT, LEFTOVER:] = rows[LEFTOVER - 1]
    slots.leftover_steps[SLOT], slots.commitment_steps[SLOT] = LEFTOVER, COMMITMENT
    slots.seed[SLOT] = 77


def test_engine_process_answers_as_the_checkpoint_does_in_this_process() -> None:
    """SL-08: the serving path computes what the offline path computes, to 1e-5."""
    model = make_model(str(FOLDER))
    memory = memoryview(bytearray(slot_memory_bytes(model.contract, 2)))
    ours = slot_arrays(model.contract, 2, memory)
    model.bind(ours, LanePlan(num_states=2))
    _write(ours)
    for stage in Stage:
        assert model.run(stage, Batch(slot_ids=(SLOT,), state_ids=(0,))) == {}
    config = ServerConfig(
        model=str(FOLDER), calibration='tiny', calibration_mismatch='warn', spare_engine=False
    )
    link = EngineLink(EngineSettings(config))
    try:
        contract, theirs = link.start(TIMEOUT_S)
        assert contract == model.contract
        assert isinstance(link.receive(TIMEOUT_S), Ready)
        _write(theirs)
        request = Request(
            key=1, robot=0, slot=SLOT, arrival_ns=time.monotonic_ns(), budget_ns=10**10,
            reserved_ns=0, period_ns=180_000_000,
        )  # fmt: skip
        link.send(Submit(request=request))
        while isinstance(done := link.receive(TIMEOUT_S), Beat):
            pass
        assert isinstance(done, Done)
        found = theirs.actions[SLOT].copy()
    finally:
        link.close()
    np.testing.assert_allclose(found, ours.actions[SLOT], atol=1e-5)
    np.testing.assert_array_equal(found[:COMMITMENT], ours.leftover[SLOT, :COMMITMENT])
    assert np.abs(found[COMMITMENT:] - ours.leftover[SLOT, COMMITMENT:]).max() > 1e-3
