# SPDX-License-Identifier: Apache-2.0
"""One setting: what it accepts, and how a value is checked and described."""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar

from xinfer_ros.errors import ConfigError

SettingsT = TypeVar('SettingsT')
# A step, a scale or a divisor: 0 would never end or divide by nothing
_MORE_THAN_ZERO = {'slowdown', 'tick_ms', 'sharpness_ms', 'pacing_step_ms', 'pacing_rate_per_ms'}


def setting(
    default: Any,
    doc: str,
    *,
    unit: str = '',
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    pattern: str = '',
    pattern_words: str = '',
) -> Any:
    """
    Return a dataclass field that knows its meaning, unit and bounds.

    :param pattern: of text that is allowed beside the choices
    :param pattern_words: what that means, for a person
    """
    facts = {
        'doc': doc,
        'unit': unit,
        'low': low,
        'high': high,
        'choices': tuple(choices),
        'pattern': re.compile(pattern) if pattern else None,
        'pattern_words': pattern_words,
    }
    return field(default=default, metadata=facts)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint with the nearest valid name, and all of them if none is near."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean {close[0]}?' if close else f'known: {", ".join(known)}'


def allowed(of: 'Field[Any]') -> str:
    """Return what a setting accepts, in words."""
    facts, kind = of.metadata, _kind(of)
    words = {bool: 'true or false', int: 'a whole number', float: 'a number', str: 'text'}
    text = words.get(kind, 'a list of text')
    if facts['choices']:
        others = (facts['pattern_words'],) if facts['pattern_words'] else ()
        return f'one of {", ".join((*facts["choices"], *others))}'
    unit = f' {facts["unit"]}' if facts['unit'] else ''
    if facts['low'] is not None:
        return f'{text} from {facts["low"]:g} to {facts["high"]:g}{unit}'
    return text + unit


def _kind(of: 'Field[Any]') -> type:
    return type(of.default)


def _checked(of: 'Field[Any]', value: object, origin: str) -> object:
    """Return the value in the setting's type, or say what is wrong with it."""
    kind, facts, given = _kind(of), of.metadata, value
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if kind is tuple and isinstance(value, list | tuple):
        value = tuple(value)
    good = type(value) is kind
    if good and kind is tuple:
        good = all(isinstance(item, str) for item in value)  # type: ignore[attr-defined]
    if good and isinstance(value, float):
        good = math.isfinite(value)
    if good and facts['low'] is not None:
        good = facts['low'] <= value <= facts['high']  # type: ignore[operator]
    if good and facts['choices']:
        pattern = facts['pattern']
        good = value in facts['choices'] or bool(pattern and pattern.fullmatch(value))
    if not good:
        hint = ''
        if facts['choices'] and isinstance(value, str):
            hint = f'; {nearest(value, facts["choices"])}'
        raise ConfigError(
            f'{origin}: {of.name} is {given!r} ({type(given).__name__}); '
            f'allowed: {allowed(of)}{hint}'
        )
    return value


def settings_from(
    kind: type[SettingsT], values: Mapping[str, object], origins: Mapping[str, str]
) -> SettingsT:
    """
    Return settings with some values in place of the defaults.

    :param kind: ServerConfig, ExecutorConfig or ReplayConfig
    :param values: value of each setting that is not the default
    :param origins: where each value stands, for error texts
    :raises ConfigError: an unknown key, a wrong type or a value out of range
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    accepted = {}
    for name, value in values.items():
        origin = origins.get(name, 'settings')
        if name not in known:
            raise ConfigError(
                f'{origin}: unknown key {name}, {_node(kind)} has none such; '
                f'{nearest(name, list(known))}'
            )
        accepted[name] = _checked(known[name], value, origin)
    try:
        return kind(**accepted)
    except ConfigError as error:
        places = ', '.join(dict.fromkeys(origins.values())) or 'settings'
        raise ConfigError(f'{places}: {error}') from None


def _node(kind: type[Any]) -> str:
    return f'the {kind.__name__.removesuffix("Config").lower()} node'


def describe(kind: type[Any]) -> list[tuple[str, str, str, str]]:
    """Return (name, default, what is allowed, meaning) of every setting."""
    rows = []
    for of in fields(kind):
        assert of.default is not MISSING
        default = list(of.default) if _kind(of) is tuple else of.default
        rows.append((of.name, str(default), allowed(of), of.metadata['doc']))
    return rows


def changes(owner: Any, pairs: Sequence[str], what: str) -> dict[str, Any]:
    """
    Return ``key=value`` pairs as values of a dataclass's fields.

    :param owner: the dataclass, or one of it
    :param what: whose settings they are, in words
    :raises ConfigError: if a pair is none, a key is unknown, or a value does not fit
    """
    known = {field.name: field for field in fields(owner)}
    found = {}
    for pair in pairs:
        key, equals, text = pair.partition('=')
        if not equals:
            raise ConfigError(f'{pair}: key=value is needed')
        if key not in known:
            raise ConfigError(f'{what} has no setting {key}; {nearest(key, sorted(known))}')
        found[key] = _value(known[key], text)
    return found


def _value(field: 'Field[Any]', text: str) -> Any:
    if field.type is bool:
        if text.lower() not in ('true', 'false'):
            raise ConfigError(f'{field.name}={text}: true or false is needed')
        return text.lower() == 'true'
    if field.type is str:
        return text
    if field.type == tuple[str, ...]:
        return tuple(part for part in text.split(',') if part)
    try:
        if field.type is int or field.type is float:
            value = field.type(text)
            if not math.isfinite(value) or value < 0:
                raise ValueError
            if value == 0 and field.name in _MORE_THAN_ZERO:
                raise ConfigError(f'{field.name}={text}: it must be more than 0')
            return value
        limits = tuple(int(part) for part in text.split(','))
        if len(limits) != 3 or min(limits) < 1:
            raise ValueError
        return limits
    except ValueError:
        if field.type is int:
            needed = 'a whole number >= 0'
        elif field.type is float:
            needed = 'a number >= 0'
        else:
            needed = 'three whole numbers > 0, as 2,6,5,'
        raise ConfigError(f'{field.name}={text}: {needed} is needed') from None
