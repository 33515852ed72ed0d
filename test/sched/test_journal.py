# SPDX-License-Identifier: Apache-2.0
"""What a core was told can be told again, from its first event or from a state that was kept."""

from random import Random

import pytest

from xinfer_ros.sched.journal import Call, CallKind, JournalReader, Started
from xinfer_ros.sched.native import NativeCore, native_core
from xinfer_ros.sched.settings import policy_settings

from .random_settings import CASES, random_settings
from .random_states import MS, RandomFleet, random_device

EVENTS = 250


def _made_again(piece: bytes, reader: JournalReader, core: NativeCore) -> list[Call]:
    calls = list(reader.read(piece))
    assert [call.make(core) for call in calls] == calls
    return calls


@pytest.mark.parametrize('case', CASES)
def test_core_that_is_told_the_same_answers_the_same_to_the_last_bit(case: str) -> None:
    """From an empty state, and from the state of any moment; for every policy."""
    random = Random(case)
    device = random_device(random)
    settings = random_settings(random, device, case)
    core = native_core(device, settings)
    core.keep_journal(True)
    first = core.snapshot()
    fleet = RandomFleet(random, device, [core])
    fleet.run(EVENTS)
    piece = core.take_journal()
    middle = core.snapshot()
    fleet.run(EVENTS)
    rest = core.take_journal()

    again = native_core(device, settings)
    again.restore(first)
    calls = _made_again(piece, JournalReader(), again)
    assert {CallKind.ANNOUNCE, CallKind.SUBMIT, CallKind.DISPATCH} <= {c.kind for c in calls}
    assert again.snapshot() == middle
    later = native_core(device, settings)
    later.restore(middle)
    assert _made_again(rest, JournalReader(), later)
    assert later.snapshot() == core.snapshot()
    assert later.counters() == core.counters()


def _fifo() -> NativeCore:
    device = random_device(Random(0))
    return native_core(device, policy_settings('fifo', device))


def _submit(core: NativeCore, key: int, now_ns: int) -> None:
    core.submit(
        now_ns=now_ns, key=key, robot=key, arrival_ns=now_ns - MS, budget_ns=90 * MS,
        reserved_ns=4 * MS, period_ns=180 * MS,
    )  # fmt: skip


def test_calls_are_read_with_what_they_were_told_and_answered() -> None:
    core = _fifo()
    core.keep_journal(True)
    _submit(core, 7, 10 * MS)
    core.dispatch(11 * MS)
    core.set_budget(7, 60 * MS)
    assert core.cancel(12 * MS, 7) is False
    core.withdraw(15 * MS, 1)
    calls = list(JournalReader().read(core.take_journal()))
    assert [call.kind for call in calls] == [
        CallKind.SUBMIT, CallKind.DISPATCH, CallKind.SET_BUDGET, CallKind.CANCEL,
        CallKind.WITHDRAW,
    ]  # fmt: skip
    assert calls[0].named() == {
        'key': 7, 'robot': 7, 'arrival_ns': 9 * MS, 'budget_ns': 90 * MS, 'reserved_ns': 4 * MS,
        'period_ns': 180 * MS,
    }  # fmt: skip
    assert calls[1].units == (Started(number=1, stage=calls[1].units[0].stage, keys=(7,)),)
    assert [call.now_ns // MS for call in calls] == [10, 11, 11, 12, 15]
    assert calls[3].answer == (0,)


def test_nothing_is_taken_down_until_it_is_asked_for() -> None:
    core = _fifo()
    _submit(core, 1, 10 * MS)
    assert core.take_journal() == b''
    core.keep_journal(True)
    core.dispatch(11 * MS)
    assert len(core.take_journal()) < 16
    assert core.take_journal() == b''


@pytest.mark.parametrize(
    ('piece', 'words'),
    [
        (b'\x0b', 'no call of a scheduler has the number 11'),
        (b'\x05', 'a call is cut off'),
        (b'\x04\x02\x7f', 'a list of a call is cut off'),
        (b'\x05' + b'\xff' * 10, 'a number of a call is too long'),
    ],
)
def test_damaged_piece_is_refused(piece: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(JournalReader().read(piece))


def test_state_of_another_policy_or_version_is_refused() -> None:
    device = random_device(Random(0))
    state = native_core(device, policy_settings('foresight', device)).snapshot()
    for wrong, words in (
        (state, 'the state is of another policy'),
        (state[:-12], 'the state is cut off'),
        (b'\xff' + state[1:], 'another version has kept the state'),
    ):
        with pytest.raises(ValueError, match=words):
            _fifo().restore(wrong)


def test_live_requests_and_predictions_can_be_looked_at() -> None:
    core = _fifo()
    _submit(core, 3, 10 * MS)
    assert core.slack_ms(99) == float('inf')
    before_ms = core.slack_ms(3)
    core.dispatch(11 * MS)
    ((key, robot, arrival_ns, budget_ns, deadline_ns, stage, unit),) = core.live_requests()
    assert (key, robot, arrival_ns, budget_ns) == (3, 3, 9 * MS, 90 * MS)
    assert (deadline_ns, stage, unit) == (95 * MS, 0, 1)
    assert core.slack_ms(3) < before_ms  # a millisecond has passed
    assert set(core.foreseen_ends_ns()) == {1}
    core.complete(core.foreseen_ends_ns()[1] + 5 * MS, 1)
    _, error_ns, predictions = core.counters()
    assert (error_ns, predictions) == (5 * MS, 1)
