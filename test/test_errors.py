# SPDX-License-Identifier: Apache-2.0
"""The exception tree, the reason codes, and the message files that carry them."""

import re
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected, XinferError

ROOT = Path(__file__).parents[1]
INTERFACES = sorted([*ROOT.glob('msg/*.msg'), *ROOT.glob('srv/*.srv')])
CONSTANT = re.compile(r'^(\S+) ([A-Z][A-Z0-9_]*)\s*=\s*(-?\d+)')
FIELD = re.compile(r'^[A-Za-z0-9_/]+(\[[^\]]*\])? [a-z][a-z0-9_]*(?P<rest>.*)$')


def _uncommented(text: str) -> list[str]:
    """Return the fields of an interface file that no comment explains."""
    fields = [(line, match) for line in text.splitlines() if (match := FIELD.match(line))]
    return [line for line, match in fields if not re.search(r'#\s*\S', match['rest'])]


def test_reasons_are_the_constants_of_the_message() -> None:
    text = (ROOT / 'msg' / 'ReasonCode.msg').read_text()
    constants = [m for line in text.splitlines() if (m := CONSTANT.match(line))]
    assert {m[2]: int(m[3]) for m in constants} == {reason.name: int(reason) for reason in Reason}
    assert [m[2] for m in constants] == [reason.name for reason in Reason]
    assert {m[1] for m in constants} == {'uint16'}


def test_reasons_fit_the_field_that_carries_them() -> None:
    assert all(0 <= reason < 2**16 for reason in Reason)
    assert len({int(reason) for reason in Reason}) == len(Reason.__members__)


def test_values_on_the_wire_never_change() -> None:
    """The wire contract: a value that was once given stays."""
    given = {
        'OK': 0, 'NOT_READY': 1, 'ENGINE_RESTARTED': 2, 'EXPIRED': 3, 'SUPERSEDED': 4,
        'SHUTDOWN': 5, 'UNKNOWN_SESSION': 6, 'MODEL_FAILED': 7, 'DUPLICATE_ID': 20,
        'REJECTED_PROTOCOL': 21,
        'REJECTED_JOINTS': 22, 'REJECTED_CAMERAS': 23, 'REJECTED_HORIZON': 24,
        'REJECTED_SPACING': 25, 'REJECTED_FLEET_FULL': 26, 'REJECTED_NAME': 27,
        'REJECTED_STATE': 40, 'REJECTED_IMAGE': 41, 'REJECTED_BUDGET': 42, 'REJECTED_LEFTOVER': 43,
        'REJECTED_COMMITMENT': 44, 'REJECTED_INSTRUCTION': 45, 'REJECTED_NO_SLOT': 46,
        'REJECTED_ORDER': 47, 'REJECTED_PERIOD': 48, 'REJECTED_CAPACITY': 49,
        'MISSING_CAMERA': 50,
        'REJECTED_ROWS': 60, 'REJECTED_COLUMNS': 61, 'STALE_CHUNK': 62,
        'DUPLICATE_CHUNK': 63, 'WRONG_SESSION': 64, 'WRONG_EPISODE': 65, 'WRONG_EPOCH': 66,
    }  # fmt: skip
    assert {name: int(Reason[name]) for name in given} == given


@pytest.mark.parametrize('path', INTERFACES, ids=lambda path: path.name)
def test_every_field_on_the_wire_has_a_comment(path: Path) -> None:
    text = path.read_text()
    assert text.startswith('# ')
    assert _uncommented(text) == []


def test_field_without_a_comment_is_found() -> None:
    text = (
        '# All.\nuint8 GOOD=1\nuint8 good  # why\nuint8 bad\nfloat32[] worse  #\npkg/Kind bad2\n'
    )
    assert _uncommented(text) == ['uint8 bad', 'float32[] worse  #', 'pkg/Kind bad2']


def test_phases_of_the_server_are_the_constants_of_its_message() -> None:
    from xinfer_ros.engine.status import ServerPhase

    text = (ROOT / 'msg' / 'ServerState.msg').read_text()
    constants = [m for line in text.splitlines() if (m := CONSTANT.match(line))]
    assert {m[2]: int(m[3]) for m in constants} == {p.name: int(p) for p in ServerPhase}


def test_refusal_carries_reason_and_detail_and_says_both() -> None:
    refusal = Rejected(Reason.REJECTED_BUDGET, 'a budget of 0 ns; more than 0')
    assert refusal.reason is Reason.REJECTED_BUDGET
    assert refusal.detail == 'a budget of 0 ns; more than 0'
    assert str(refusal) == 'REJECTED_BUDGET: a budget of 0 ns; more than 0'


@pytest.mark.parametrize('kind', [ConfigError, ModelError, Rejected])
def test_every_error_of_ours_can_be_caught_as_one(kind: type[Exception]) -> None:
    assert issubclass(kind, XinferError)
    assert issubclass(kind, Exception)
