# SPDX-License-Identifier: Apache-2.0
"""Calls of a scheduler as lines for a person."""

from xinfer_ros.sched.journal import Call, CallKind, Started


def call_line(call: Call) -> str:
    """Return a call with what it was told and what it answered, times in ms."""
    told = ', '.join(_value(name, value) for name, value in call.named().items())
    return f'{call.now_ns / 1e6:.3f} ms: {call.kind.name.lower()}({told}){_answer(call)}'


def _value(name: str, value: int) -> str:
    if name.endswith('_ns'):
        return f'{name[:-3]} {value / 1e6:.3f} ms'
    return f'{name} {value}'


def _answer(call: Call) -> str:
    match call.kind:
        case CallKind.DISPATCH:
            return ' starts ' + ('; '.join(map(_unit, call.units)) or 'nothing')
        case CallKind.COMPLETE | CallKind.RELEASE:
            return ' ends ' + (f'requests {_keys(call.answer)}' if call.answer else 'no request')
        case CallKind.PACE:
            return f': {call.answer[0] / 1e6:.3f} ms'
        case CallKind.CANCEL:
            return ': it waited' if call.answer[0] else ': it does not wait'
        case _:
            return ''


def _unit(unit: Started) -> str:
    return f'unit {unit.number}, {unit.stage.name} of {_keys(unit.keys)}'


def _keys(keys: tuple[int, ...]) -> str:
    return ', '.join(map(str, keys))
