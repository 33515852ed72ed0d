# SPDX-License-Identifier: Apache-2.0
"""Recorded budget sequences: which response budgets a robot asks for through an episode."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xinfer_ros.errors import ConfigError

FORMAT = 'xinfer_ros budget sequences 1'
MAX_BUDGET_MS = 60_000.0
MAX_RESPONSES = 1_000_000
NEEDED = (
    f'needed is a JSON object with "format": "{FORMAT}" and a list "sequences", as '
    '`xinfer episodes budgets --output FILE` writes it'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPhase:
    """
    A run of responses with one budget.

    :param budget_ms: their response budget [ms]
    :param responses: how many
    """

    budget_ms: float
    responses: int

    def __post_init__(self) -> None:
        """Refuse a phase that no robot could ask for."""
        if not 0.0 < self.budget_ms <= MAX_BUDGET_MS:
            raise ConfigError(
                f'response budget {self.budget_ms:g} ms: more than 0 and at most '
                f'{MAX_BUDGET_MS:g} ms are allowed'
            )
        if not 0 < self.responses <= MAX_RESPONSES:
            raise ConfigError(f'{self.responses} responses: 1 to {MAX_RESPONSES} are allowed')


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSequence:
    """
    The budgets of one episode.

    :param name: of the episode
    :param duration_s: length of the episode [s]
    :param coverage: share of its time in which the budget is the tight one, 0 to 1
    :param phases: its budgets in order, at least one phase
    """

    name: str
    duration_s: float
    coverage: float
    phases: tuple[BudgetPhase, ...]

    def __post_init__(self) -> None:
        """Refuse a sequence without a response."""
        if not self.phases:
            raise ConfigError(f'budget sequence {self.name} has no phase; one is needed')

    @property
    def budgets_ms(self) -> tuple[float, ...]:
        """Return the budget of each response [ms]."""
        return tuple(phase.budget_ms for phase in self.phases for _ in range(phase.responses))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSequences:
    """
    Sequences that belong together, as a file holds them.

    :param about: where they come from, one line
    :param period_ms: time that one response stands for [ms]
    :param sequences: one an episode, at least one
    """

    about: str
    period_ms: float
    sequences: tuple[BudgetSequence, ...]

    @property
    def mean_coverage(self) -> float:
        """Return the mean of the sequences' coverage, 0 to 1."""
        return sum(sequence.coverage for sequence in self.sequences) / len(self.sequences)

    def text(self) -> str:
        """Return the file's text: JSON, one line a sequence."""
        head = {'format': FORMAT, 'about': self.about, 'period_ms': self.period_ms}
        lines = [f' {json.dumps(key)}: {json.dumps(value)},' for key, value in head.items()]
        rows = ',\n'.join(f'  {json.dumps(_record(sequence))}' for sequence in self.sequences)
        return '\n'.join(['{', *lines, ' "sequences": [', rows, ' ]', '}']) + '\n'


def load_budget_sequences(path: Path) -> BudgetSequences:
    """
    Return the sequences of a file.

    :raises ConfigError: if it can't be read or holds something else
    """
    try:
        return parse_budget_sequences(path.read_text())
    except OSError as error:
        raise ConfigError(f'budget sequences {path}: {error.strerror}') from error
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f'budget sequences {path}: {error}') from error


def parse_budget_sequences(text: str) -> BudgetSequences:
    """
    Return the sequences that a file's text tells of.

    :raises ConfigError: if it is something else
    """
    try:
        found: Any = json.loads(text)
        if found['format'] != FORMAT:
            raise ConfigError(f'the format is {found["format"]!r}; {NEEDED}')
        sequences = tuple(_sequence(record) for record in found['sequences'])
        period_ms = float(found['period_ms'])
        about = str(found['about'])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f'{type(error).__name__} {error}; {NEEDED}') from error
    if not sequences:
        raise ConfigError(f'there is no sequence; {NEEDED}')
    return BudgetSequences(about=about, period_ms=period_ms, sequences=sequences)


def _record(sequence: BudgetSequence) -> dict[str, object]:
    phases: Sequence[Sequence[float]] = [
        [phase.budget_ms, phase.responses] for phase in sequence.phases
    ]
    return {
        'name': sequence.name,
        'duration_s': round(sequence.duration_s, 3),
        'coverage': round(sequence.coverage, 4),
        'phases': phases,
    }


def _sequence(record: Any) -> BudgetSequence:
    phases = tuple(
        BudgetPhase(budget_ms=float(budget_ms), responses=int(responses))
        for budget_ms, responses in record['phases']
    )
    return BudgetSequence(
        name=str(record['name']),
        duration_s=float(record['duration_s']),
        coverage=float(record['coverage']),
        phases=phases,
    )
