# SPDX-License-Identifier: Apache-2.0
"""Budget sequences in files."""

from pathlib import Path

import pytest

from xinfer_ros.core.budget_sequence import (
    BudgetPhase,
    BudgetSequence,
    BudgetSequences,
    load_budget_sequences,
    parse_budget_sequences,
)
from xinfer_ros.errors import ConfigError

PHASES = (BudgetPhase(budget_ms=400.0, responses=2), BudgetPhase(budget_ms=90.0, responses=3))
SEQUENCES = BudgetSequences(
    about='made by hand',
    period_ms=180.0,
    sequences=(
        BudgetSequence(name='one', duration_s=0.9, coverage=0.6, phases=PHASES),
        BudgetSequence(name='two', duration_s=0.36, coverage=0.0, phases=PHASES[:1]),
    ),
)


def test_file_gives_back_what_was_written(tmp_path: Path) -> None:
    (tmp_path / 'a.json').write_text(SEQUENCES.text())
    assert load_budget_sequences(tmp_path / 'a.json') == SEQUENCES


def test_text_has_a_line_a_sequence() -> None:
    assert sum('"phases"' in line for line in SEQUENCES.text().splitlines()) == 2


def test_budgets_are_told_response_by_response() -> None:
    assert SEQUENCES.sequences[0].budgets_ms == (400.0, 400.0, 90.0, 90.0, 90.0)
    assert SEQUENCES.mean_coverage == pytest.approx(0.3)


@pytest.mark.parametrize(
    ('old', 'new', 'part'),
    [
        ('sequences 1', 'sequences 2', "the format is 'xinfer_ros budget sequences 2'"),
        ('"phases"', '"fazes"', "KeyError 'phases'"),
        ('[90.0, 3]', '[90.0]', 'ValueError'),
        ('[90.0, 3]', '[-90.0, 3]', 'response budget -90 ms'),
        ('[90.0, 3]', '[90.0, 0]', '0 responses'),
        ('[[400.0, 2]]', '[]', 'sequence two has no phase'),
        ('{', '[', 'JSONDecodeError'),
    ],
)
def test_other_text_is_refused(old: str, new: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_budget_sequences(SEQUENCES.text().replace(old, new, 1))
    assert part in str(caught.value)


def test_other_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='No such file'):
        load_budget_sequences(tmp_path / 'none')
    (tmp_path / 'a').write_bytes(b'\xff\xfe')
    with pytest.raises(ConfigError, match=r'budget sequences .*a'):
        load_budget_sequences(tmp_path / 'a')
    (tmp_path / 'b').write_text('{"format": "xinfer_ros budget sequences 1", "sequences": []}')
    with pytest.raises(ConfigError, match='xinfer episodes budgets'):
        load_budget_sequences(tmp_path / 'b')
