# SPDX-License-Identifier: Apache-2.0
"""Single keys of a terminal, without Return."""

import os
import select
import sys
import termios
import tty
from types import TracebackType


class Keyboard:
    """Gives keys one by one while it is entered; none if stdin is no terminal. A context."""

    def __init__(self) -> None:
        self._is_there = sys.stdin.isatty()

    def __enter__(self) -> 'Keyboard':
        """Take over the keyboard."""
        if self._is_there:
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back as it was."""
        if self._is_there:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def key(self, seconds: float) -> str:
        """Return the key that is pressed within some time, empty if none is."""
        ready, _, _ = select.select([sys.stdin] if self._is_there else [], [], [], seconds)
        return os.read(sys.stdin.fileno(), 1).decode(errors='replace') if ready else ''
