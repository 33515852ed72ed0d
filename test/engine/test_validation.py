# SPDX-License-Identifier: Apache-2.0
"""What a server says of an observation before it costs anything: expected and received."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from xinfer_ros.core.chunk import Answer
from xinfer_ros.errors import Reason

from .scripted_engine import Bench, observation

ROWS = np.arange(24, dtype=np.float32).reshape(8, 3)


@pytest.fixture
def bench() -> Bench:
    """Give a front end whose engine is ready."""
    bench = Bench()
    bench.engine.become_ready(7)
    return bench


def _answer(bench: Bench, **changes: Any) -> Answer:
    """Return the answer to one observation; the engine answers ROWS at once."""
    robot = bench.robot('r0')
    bench.ask(robot, 1, **changes)
    submitted = bench.engine.submitted()
    if submitted:
        bench.engine.finish(submitted[0], ROWS)
    return bench.answers[0][1]


@pytest.mark.parametrize(
    ('commitment', 'rows', 'frozen', 'degraded'),
    [
        (0, 6, 0, False),
        (3, 6, 3, False),
        (4, 6, 4, True),
        (5, 6, 4, True),
        (2**32 - 1, 0, 0, False),
    ],
)
def test_commitment_is_served_up_to_the_limit_and_answers_say_so(
    bench: Bench, commitment: int, rows: int, frozen: int, degraded: bool
) -> None:
    """RT-02: at most 4 here; d at or above it is served and flagged; a first request has none."""
    leftover = np.ones((rows, 3), np.float32)
    answer = _answer(bench, commitment_steps=commitment, leftover=leftover)
    assert answer.reason is Reason.OK
    assert (answer.frozen_steps, answer.degraded) == (frozen, degraded)
    assert bench.engine.life is not None
    slots, slot = bench.engine.life.slots, bench.engine.submitted()[0].slot
    assert slots.commitment_steps[slot] == min(commitment, rows)


def test_more_rows_than_there_are_cannot_be_promised(bench: Bench) -> None:
    """RT-02: a prefix that does not fit its d is refused, with both figures."""
    answer = _answer(bench, commitment_steps=3, leftover=np.ones((2, 3), np.float32))
    assert answer.reason is Reason.REJECTED_COMMITMENT
    assert '3 rows are promised' in answer.detail
    assert 'leftover has 2' in answer.detail


def test_absent_camera_is_named(bench: Bench) -> None:
    """SL-08: MISSING_CAMERA(name), with what is expected and what was received."""
    robot = bench.robot('r0')
    frame = observation(robot, 1).images[0]
    bench.ask(robot, 1, images=(replace(frame, name='wrist'),))
    bench.ask(robot, 2, images=())
    first, second = (answer for _, answer in bench.answers)
    assert {first.reason, second.reason} == {Reason.MISSING_CAMERA}
    assert first.detail == 'no picture of top: expected top; received wrist'
    assert second.detail == 'no picture of top: expected top; received none'


WRONG = {
    'a state of another width': (
        {'state': np.zeros(2, np.float32)},
        Reason.REJECTED_STATE,
        'state: expected float32 of shape (3,); received float32 of shape (2,)',
    ),
    'a state of another type': (
        {'state': np.zeros(3, np.float64)},
        Reason.REJECTED_STATE,
        'state: expected float32 of shape (3,); received float64 of shape (3,)',
    ),
    'a state with another axis': (
        {'state': np.zeros((1, 3), np.float32)},
        Reason.REJECTED_STATE,
        'state: expected float32 of shape (3,); received float32 of shape (1, 3)',
    ),
    'a state that is not finite': (
        {'state': np.array([0, np.nan, 0], np.float32)},
        Reason.REJECTED_STATE,
        'state: expected finite values; received nan at (1,)',
    ),
    'a leftover of another width': (
        {'leftover': np.zeros((2, 4), np.float32)},
        Reason.REJECTED_LEFTOVER,
        'leftover: expected float32 of shape (2, 3); received float32 of shape (2, 4)',
    ),
    'a leftover of another type': (
        {'leftover': np.zeros((2, 3), np.int32)},
        Reason.REJECTED_LEFTOVER,
        'leftover: expected float32 of shape (2, 3); received int32 of shape (2, 3)',
    ),
    'a leftover that is not finite': (
        {'leftover': np.array([[0, 0, 0], [0, 0, np.inf]], np.float32)},
        Reason.REJECTED_LEFTOVER,
        'leftover: expected finite values; received inf at (1, 2)',
    ),
    'a leftover longer than a chunk': (
        {'leftover': np.zeros((9, 3), np.float32)},
        Reason.REJECTED_LEFTOVER,
        'leftover: expected at most 8 rows, those of a chunk; received 9',
    ),
}


@pytest.mark.parametrize(('changes', 'reason', 'detail'), WRONG.values(), ids=list(WRONG))
def test_wrong_shape_or_type_is_refused_with_expected_and_received(
    bench: Bench, changes: dict[str, Any], reason: Reason, detail: str
) -> None:
    """SL-08."""
    answer = _answer(bench, **changes)
    assert (answer.reason, answer.detail) == (reason, detail)
    assert bench.engine.submitted() == []


def test_picture_of_another_type_is_refused_with_expected_and_received(bench: Bench) -> None:
    """SL-08: the camera, its encoding, and those that are allowed."""
    robot = bench.robot('r0')
    frame = observation(robot, 1).images[0]
    bench.ask(robot, 1, images=(replace(frame, encoding='16UC1'),))
    answer = bench.answers[0][1]
    assert answer.reason is Reason.REJECTED_IMAGE
    for word in ('camera top', '16UC1', 'rgb8'):
        assert word in answer.detail


def test_slot_holds_nothing_of_the_request_before(bench: Bench) -> None:
    """SL-08: else the same observation would give other inputs, by what was served before it."""
    robot = bench.robot('r0')
    bench.ask(robot, 1, instruction='a long instruction', leftover=np.ones((6, 3), np.float32))
    first = bench.engine.submitted()[0]
    bench.engine.finish(first, ROWS)
    bench.ask(robot, 2, instruction='go')
    second = bench.engine.submitted()[1]
    assert second.slot == first.slot
    assert bench.engine.life is not None
    slots = bench.engine.life.slots
    assert not slots.leftover[second.slot].any()
    assert bytes(slots.instruction[second.slot]).rstrip(b'\0') == b'go'
