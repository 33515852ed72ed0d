# SPDX-License-Identifier: Apache-2.0
"""How arguments are read and refused."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import nearest

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction['OneLineParser']
else:
    Commands = Any

MAX_FLEET = 4096
# A step, a scale or a divisor: 0 would never end or divide by nothing
_MORE_THAN_ZERO = {'slowdown', 'tick_ms', 'sharpness_ms', 'pacing_step_ms', 'pacing_rate_per_ms'}


class OneLineParser(argparse.ArgumentParser):
    """Says in one line what is wrong and where help is."""

    def error(self, message: str) -> NoReturn:
        """End the process with exit code 2."""
        self.exit(2, f'xinfer: {message}; {self.prog} --help tells more\n')


class ExampleFormatter(
    argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter
):
    """Shows defaults where there are any, and keeps the lines of the text around the options."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if not action.default else super()._get_help_string(action)


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a type of argument: a whole number within bounds."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f'{text!r}: a whole number from {low} to {high}')
        return int(text)

    return parse


def whole_numbers(low: int, high: int) -> Callable[[str], tuple[int, ...]]:
    """Return a type of argument: whole numbers with commas between."""
    single = whole_number(low, high)

    def parse(text: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(single(part.strip()) for part in text.split(',')))

    return parse


def seconds(text: str) -> float:
    """Return an argument in seconds, up to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError(f'{text!r}: seconds, 0 to 86400')
    return value


def names(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    """
    Return names with commas between; ``all`` means every one.

    :raises ConfigError: if one is not known
    """
    wanted = tuple(dict.fromkeys(part.strip() for part in text.split(',')))
    if wanted == ('all',):
        return tuple(known)
    for name in wanted:
        if name not in known:
            raise ConfigError(f'{what} {name!r} is not known; known: {", ".join(known)}, or all')
    return wanted


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


def file_path(text: str) -> Path:
    """Return an argument that names a file or folder."""
    return Path(text).expanduser()
