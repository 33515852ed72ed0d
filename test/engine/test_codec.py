# SPDX-License-Identifier: Apache-2.0
"""Records as packets."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_ros.core.request import QueueSight, Request
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.codec import MAX_RECORD_BYTES, decode, encode
from xinfer_ros.engine.records import (
    Announce,
    Beat,
    Cancel,
    Contract,
    Done,
    Dropped,
    Ready,
    Record,
    SetBudget,
    Start,
    Submit,
)
from xinfer_ros.engine.seen import Named, SeenUnit, SeenWaiting, Timeline, Watch
from xinfer_ros.errors import Reason
from xinfer_ros.models.registry import echo_contract

NUMBERS = st.integers(-(2**63), 2**63 - 1)
NAMED_NUMBERS = {
    kind: st.fixed_dictionaries({name: NUMBERS for name in kind.__dataclass_fields__})
    for kind in (QueueSight, Request, Done)
}
SIGHTS = st.none() | NAMED_NUMBERS[QueueSight].map(lambda numbers: QueueSight(**numbers))
OTHERS = (
    Start(),
    Contract(model=echo_contract(), num_slots=3),
    Ready(),
    Cancel(key=1),
    SetBudget(key=1, budget_ns=2),
    Beat(
        oldest_unit_ns=1,
        slowdown=1.5,
        correction=(1.0, 2.0, 3.0),
        mirror_error=0.5,
        busy_ns=(1, 2, 3),
        verdicts=tuple(range(8)),
    ),
    Dropped(key=1, reason=Reason.EXPIRED, detail='zu spät'),
    Named(robot=1, name='r1'),
    Watch(on=True),
    Timeline(
        from_ns=1,
        to_ns=2,
        units=(
            SeenUnit(
                number=1, stage=Stage.VIT, started_ns=1, ended_ns=None, robots=(1, 2),
                keys=(3, 4), protected=True,
            ),
        ),
        waiting=(SeenWaiting(robot=1, key=2, stage=Stage.ACTION, since_ns=3, why='a forecast'),),
    ),
)  # fmt: skip


@given(
    robot=NUMBERS, arrival_ns=NUMBERS, budget_ns=NUMBERS, period_ns=NUMBERS, sight=SIGHTS,
)  # fmt: skip
def test_an_announcement_comes_through(
    robot: int, arrival_ns: int, budget_ns: int, period_ns: int, sight: QueueSight | None
) -> None:
    record = Announce(
        robot=robot,
        arrival_ns=arrival_ns,
        budget_ns=budget_ns,
        period_ns=period_ns,
        sight=sight,
    )
    assert decode(encode(record)) == record


@given(request=NAMED_NUMBERS[Request], done=NAMED_NUMBERS[Done])
def test_what_every_request_takes_comes_through(
    request: dict[str, int], done: dict[str, int]
) -> None:
    for record in (Submit(request=Request(**request)), Done(**done)):
        assert decode(encode(record)) == record


@pytest.mark.parametrize('record', OTHERS, ids=lambda record: type(record).__name__)
def test_every_other_record_comes_through(record: Record) -> None:
    assert decode(encode(record)) == record


def test_no_kind_of_record_is_left_out_here() -> None:
    here = {type(record) for record in OTHERS} | {Announce, Submit, Done}
    assert here == set(get_args(Record))


def test_an_unknown_record_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown record 'Nonsense'; known: Start"):
        decode(b'["Nonsense",{}]')


def test_what_every_request_takes_is_small() -> None:
    """A process that does not read is told from one that is slow by how many records fit."""
    numbers = dict.fromkeys(Request.__dataclass_fields__, 2**62)
    assert len(encode(Submit(request=Request(**numbers)))) < 100 < MAX_RECORD_BYTES
