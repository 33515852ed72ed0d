# SPDX-License-Identifier: Apache-2.0
"""Where commands print: results on stdout, progress on a terminal's stderr."""

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_WIDTH = 120


def output_console() -> Console:
    """Return the console of results; without a terminal its lines have a fixed width."""
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


class RoundProgress:
    """
    A bar that counts what is done; nothing is shown if stderr is no terminal. A context.

    :param title: what is counted
    :param output: the console of results
    """

    def __init__(self, title: str, output: Console) -> None:
        self._output, self._errors = output, Console(stderr=True)
        self._both = output.is_terminal and self._errors.is_terminal
        self._progress = Progress(
            TextColumn('{task.description}'),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._errors,
            transient=True,
            disable=not self._errors.is_terminal,
            redirect_stdout=self._both,
        )
        self._bar = self._progress.add_task(title, total=0)
        self._total = 0

    def __enter__(self) -> 'RoundProgress':
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self._progress.stop()

    def starting(self, count: int) -> None:
        """Take in that so many more are to be done."""
        self._total += count
        self._progress.update(self._bar, total=self._total)

    def done(self, result: object = None) -> None:
        """Take in that one more is done."""
        self._progress.advance(self._bar)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        console = self._progress.console if self._both else self._output
        console.print(line, highlight=False, soft_wrap=True)


class StatusLine:
    """
    One line on a terminal's stderr that says what is going on; elsewhere the steps alone, as
    lines among the results. A context.

    :param output: the console of results
    """

    def __init__(self, output: Console) -> None:
        self._output, self._errors = output, Console(stderr=True)
        self._status = self._errors.status('starting')

    def __enter__(self) -> 'StatusLine':
        """Show the line."""
        if self._errors.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the line away."""
        self._status.stop()

    def step(self, text: str) -> None:
        """Say that something begins."""
        if self._errors.is_terminal:
            self._status.update(escape(text))
        else:
            self._output.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(self, text: str) -> None:
        """Say how far it is."""
        if self._errors.is_terminal:
            self._status.update(escape(text))

    def say(self, line: str) -> None:
        """Print a line of the results."""
        both = self._output.is_terminal and self._errors.is_terminal
        console = self._errors if both else self._output
        console.print(line, markup=False, highlight=False, soft_wrap=True)
