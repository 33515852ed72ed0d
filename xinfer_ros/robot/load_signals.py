# SPDX-License-Identifier: Apache-2.0
"""What a process of a load generator and its parent say to each other, line by line."""

from dataclasses import dataclass
from typing import IO

from xinfer_ros.errors import ConfigError

READY, START, PROGRESS, DONE = 'load-ready', 'load-start', 'load-progress', 'load-done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a process is."""

    sent: int
    answered: int


def say(stream: IO[str], *words: object) -> None:
    """Write a line and let it go."""
    print(*words, file=stream, flush=True)


def wait_for_start(stream: IO[str]) -> int | None:
    """
    Return the common start as the parent tells it [ns], None if the parent has gone.

    :raises ConfigError: if it says something else
    """
    line = stream.readline()
    if not line:
        return None
    word, _, number = line.strip().partition(' ')
    if word != START or not number.isdecimal():
        raise ConfigError(f'a load waits for "{START} NANOSECONDS", got {line.strip()!r}')
    return int(number)


def progress_of(line: str) -> Progress | None:
    """Return what a line says of the progress, None if it says something else."""
    words = line.split()
    if len(words) != 3 or words[0] != PROGRESS:
        return None
    return Progress(sent=int(words[1]), answered=int(words[2]))
