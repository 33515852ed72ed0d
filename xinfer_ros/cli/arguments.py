# SPDX-License-Identifier: Apache-2.0
"""How arguments are read and refused."""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction['OneLineParser']
else:
    Commands = Any

MAX_FLEET = 4096


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
        if isinstance(action.default, tuple) and action.default:
            return f'{action.help} (default: {",".join(map(str, action.default))})'
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


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a type of argument: a number within bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'{text!r}: a number from {low:g} to {high:g}')
        return value

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


def file_path(text: str) -> Path:
    """Return an argument that names a file or folder."""
    return Path(text).expanduser()
