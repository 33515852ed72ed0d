# SPDX-License-Identifier: Apache-2.0
"""A model of any family over slots: batches, workers, refused members, ties, nothing made late."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ModelError, Reason
from xinfer_ros.models.aloha import aloha_statistics
from xinfer_ros.models.rtc import RtcOptions

from .filled_slots import write_instruction, write_request
from .staged_models import TIES, TINY, Actions, Parts, Served, Serving, same, tiny_parts


@pytest.fixture(scope='module', params=TINY)
def parts(request: pytest.FixtureRequest) -> Parts:
    """Return one tiny model of each family."""
    return tiny_parts(request.param)


@pytest.fixture(scope='module')
def started(parts: Parts) -> Served:
    """Return it with six slots and batches of up to three."""
    return Serving().start(parts)


@pytest.fixture
def served(started: Served) -> Served:
    """Return the same with fresh requests."""
    started.fill()
    return started


def _alone(served: Served, slot_ids: Sequence[int]) -> Actions:
    return np.concatenate([served.answers([slot]) for slot in slot_ids])


@pytest.mark.parametrize('bad', [0, 1, 2], ids=['first', 'middle', 'last'])
def test_refused_member_changes_nothing_for_the_others(served: Served, bad: int) -> None:
    """RT-07: the malformed request of a batch is refused, and no row is shifted."""
    slots, states = [3, 0, 4], [5, 1, 2]
    good = [slot for slot in slots if slot != slots[bad]]
    expected = _alone(served, good)
    served.slots.instruction[slots[bad], :2] = 0xFF  # not UTF-8
    served.slots.actions[:] = 0
    served.run(Stage.VIT, slots, states)
    refused = served.run(Stage.PREFILL, slots, states)
    assert {slot: error.reason for slot, error in refused.items()} == {
        slots[bad]: Reason.REJECTED_INSTRUCTION
    }
    served.run(Stage.ACTION, slots, states)
    same(served.slots.actions[good], expected)
    untouched = [slot for slot in range(6) if slot not in slots]
    assert not served.slots.actions[untouched].any()


def test_refused_member_may_leave_before_action(served: Served) -> None:
    expected = _alone(served, [1, 4])
    served.slots.instruction[2, :2] = 0xFF
    served.run(Stage.VIT, [1, 2, 4], [0, 1, 2])
    served.run(Stage.PREFILL, [1, 2, 4], [0, 1, 2])
    served.run(Stage.ACTION, [1, 4], [0, 2])
    same(served.slots.actions[[1, 4]], expected)


def test_every_member_may_be_refused(served: Served) -> None:
    served.slots.instruction[:2, :2] = 0xFF
    served.run(Stage.VIT, [0, 1], [0, 1])
    assert set(served.run(Stage.PREFILL, [0, 1], [0, 1])) == {0, 1}


def test_members_meet_in_other_batches_at_every_stage(served: Served) -> None:
    expected = _alone(served, range(6))
    served.slots.actions[:] = 0
    served.run(Stage.VIT, [0, 1, 2], [3, 4, 5])
    served.run(Stage.VIT, [3, 4, 5], [2, 1, 0])
    for pair, states in (([5, 0], [0, 3]), ([1, 4], [4, 1]), ([2, 3], [5, 2])):
        served.run(Stage.PREFILL, pair, states)
    served.run(Stage.ACTION, [4], [1])
    served.run(Stage.ACTION, [2, 5, 0], [5, 0, 3])
    served.run(Stage.ACTION, [3, 1], [2, 4])
    same(served.slots.actions, expected)


def test_state_of_an_earlier_request_leaves_no_trace(served: Served) -> None:
    expected = _alone(served, [0])
    served.slots.camera_present[3, :2] = False
    write_instruction(served.slots, 3, 'a much longer instruction than the other one has')
    served.answers([3], [0])
    same(served.answers([0], [0]), expected)


@pytest.mark.parametrize('rtc', TIES.values(), ids=TIES)
def test_batch_is_tied_as_its_members_are_alone(parts: Parts, rtc: RtcOptions) -> None:
    """Half of the requests have a leftover, each of another length and commitment."""
    served = Serving(rtc=rtc).start(parts)
    alone = _alone(served, range(6))
    batches = np.concatenate([served.answers([0, 1, 2]), served.answers([3, 4, 5])])
    same(batches, alone)
    for slot in (1, 3, 5):
        steps = 2 + slot
        np.testing.assert_array_equal(batches[slot, :steps], served.slots.leftover[slot, :steps])


def test_every_mode_ties_in_a_way_of_its_own(parts: Parts) -> None:
    """Beyond the committed rows, which are the leftover's in all of them."""
    found = {}
    for name, rtc in TIES.items():
        served = Serving(rtc=rtc, capture=False).start(parts)
        found[name] = served.answers([3])[0, 5:]
    names = list(found)
    for index, name in enumerate(names):
        for other in names[index + 1 :]:
            assert np.abs(found[name] - found[other]).max() > 1e-3, (name, other)


def test_short_and_long_prompts_get_the_same_answers_in_any_room(
    parts: Parts, served: Served
) -> None:
    for slot, text in enumerate(('x', 'y' * 30, 'z' * 60)):
        write_instruction(served.slots, slot, text)
    expected = _alone(served, [0, 1, 2])
    roomy = Serving(roomy=True).start(parts)
    for slot, text in enumerate(('x', 'y' * 30, 'z' * 60)):
        write_instruction(roomy.slots, slot, text)
    same(_alone(roomy, [0, 1, 2]), expected)
    same(roomy.answers([2, 0, 1]), expected[[2, 0, 1]])
    roomy.run(Stage.PREFILL, [0], [0])  # after which it has less room than the others
    roomy.run(Stage.ACTION, [0, 1, 2], [0, 1, 2])
    same(roomy.slots.actions[:3], expected)


def test_graphs_answer_what_the_model_answers_without_them(parts: Parts, served: Served) -> None:
    plain = Serving(capture=False).start(parts)
    same(served.answers([0, 1, 2]), plain.answers([0, 1, 2]), tolerance=1e-6)
    assert plain.model.num_recorded == 0
    assert served.model.num_recorded > 0


def test_nothing_is_recorded_after_the_start(parts: Parts) -> None:
    """SL-06: every batch, commitment, prompt length and set of cameras that is declared."""
    plan = LanePlan(num_states=8, max_batch=(8, 4, 8), workers=(1, 2, 1))
    served = Serving(plan=plan, roomy=True).start(parts, num_slots=8)
    served.model.warm_up()
    recorded = served.model.num_recorded
    assert recorded == 1 + 2 * len(parts.rooms)
    limits, longest = aloha_statistics(), served.model.contract.max_instruction_bytes
    for size in range(1, 9):
        for slot in range(size):
            steps = (size * slot) % 17
            write_request(
                served.slots, slot, seed=size * slot, statistics=limits, leftover_steps=16 - slot,
                commitment_steps=steps,
            )  # fmt: skip
            served.slots.camera_present[slot] = [size & 1, size & 2, slot & 1]
            write_instruction(served.slots, slot, 'x' * (longest * slot // 7))
        everyone = list(range(size))
        served.run(Stage.VIT, everyone, everyone)
        for start in range(0, size, 4):
            part = everyone[start : start + 4]
            assert not served.run(Stage.PREFILL, part, part, worker=size % 2)
        served.run(Stage.ACTION, everyone, everyone)
        assert np.isfinite(served.slots.actions[:size]).all()
        assert served.model.num_recorded == recorded


@pytest.mark.parametrize(
    ('stage', 'members', 'worker'),
    [(Stage.VIT, 4, 0), (Stage.PREFILL, 4, 0), (Stage.ACTION, 4, 0), (Stage.ACTION, 1, 1)],
)
def test_unit_outside_the_plan_is_an_error_and_is_not_made_in_haste(
    served: Served, stage: Stage, members: int, worker: int
) -> None:
    """SL-06."""
    recorded = served.model.num_recorded
    with pytest.raises(ModelError, match='was not prepared; the plan has batches of 1 to 3'):
        served.run(stage, range(members), range(members), worker)
    assert served.model.num_recorded == recorded


def test_workers_of_all_stages_run_at_once_as_they_do_one_by_one(parts: Parts) -> None:
    """SL-01: two workers a stage on different requests; none gets another's answer."""
    plan = LanePlan(num_states=6, max_batch=(1, 1, 1), workers=(2, 2, 2))
    served = Serving(plan=plan).start(parts)
    expected = _alone(served, range(6))
    served.slots.actions[:] = 0
    with ThreadPoolExecutor(6) as threads:
        for beat in range(5):  # a pipeline of pairs: at each beat three stages, two workers each
            running = [
                threads.submit(served.run, stage, [slot], [5 - slot], slot % 2)
                for stage in Stage
                for slot in (2 * (beat - stage), 2 * (beat - stage) + 1)
                if 0 <= slot < 6
            ]
            for unit in running:
                assert not unit.result()
    same(served.slots.actions, expected)


def test_model_is_bound_again_without_new_graphs(parts: Parts) -> None:
    served = Serving().start(parts)
    expected, recorded = served.answers([0, 1]), served.model.num_recorded
    served.model.bind(served.slots, LanePlan(num_states=2, max_batch=(2, 2, 2)))
    same(served.answers([0, 1]), expected)
    assert served.model.num_recorded == recorded
