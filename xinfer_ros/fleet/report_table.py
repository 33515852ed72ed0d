# SPDX-License-Identifier: Apache-2.0
"""A table that is shown on a terminal and written as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.markup import escape
from rich.table import Table

# Columns of longer texts are folded where the terminal is narrow
NEVER_FOLDED, NEVER_FOLDED_FIRST = 8, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """
    A table of text.

    :param columns: headers; the first column is aligned to the left, the others to the right
    :param rows: as many cells each as there are columns
    :param note: how to read it, in a sentence or two
    :param left: headers of further columns that are aligned to the left
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ''
    left: tuple[str, ...] = ()

    def rich(self) -> Table:
        """Return it for a terminal."""
        table = Table(
            title=escape(self.title),
            title_justify='left',
            caption=escape(self.note) or None,
            caption_justify='left',
        )
        for place, name in enumerate(self.columns):
            widest = max((len(row[place]) for row in self.rows), default=0)
            width = max(widest, *(len(word) for word in name.split()))
            table.add_column(
                escape('\n'.join(wrap(name, width))),
                justify='left' if self._is_left(name) else 'right',
                no_wrap=widest <= (NEVER_FOLDED if place else NEVER_FOLDED_FIRST),
                overflow='fold',
            )
        for row in self.rows:
            table.add_row(*(escape(cell) for cell in row))
        return table

    def markdown(self) -> str:
        """Return it as a section of a Markdown page."""
        lines = [f'## {self.title}', '']
        if self.note:
            lines += [self.note, '']
        lines += [
            _line(self.columns),
            _line(['---' if self._is_left(name) else '---:' for name in self.columns]),
            *(_line(row) for row in self.rows),
        ]
        return '\n'.join(lines) + '\n'

    def _is_left(self, name: str) -> bool:
        return name == self.columns[0] or name in self.left


def _line(cells: Sequence[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def beside(published: float | None, simulated: float, digits: int = 1) -> str:
    """Return a cell ``published→simulated difference``, the simulated one alone if none is."""
    if published is None:
        return f'{simulated:.{digits}f}'
    difference = round(simulated - published, digits) + 0.0  # no negative zero
    before, after = (round(value, digits) + 0.0 for value in (published, simulated))
    return f'{before:.{digits}f}→{after:.{digits}f} {difference:+.{digits}f}'
