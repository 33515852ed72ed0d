# SPDX-License-Identifier: Apache-2.0
"""Names of threads as the operating system shows them, in ``top -H`` and in what it accounts."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 15  # Linux keeps no more


def name_this_thread(name: str) -> None:
    """
    Give the calling thread a name that the operating system knows; without effect elsewhere.

    :param name: cut after ``MAX_BYTES``
    """
    with suppress(OSError):
        path = Path(f'/proc/self/task/{threading.get_native_id()}/comm')
        path.write_bytes(name.encode()[:MAX_BYTES])


def start_thread(name: str, work: Callable[[], None]) -> threading.Thread:
    """
    Start a thread of a name that Python and the operating system know; it never holds up the end.

    :param name: see ``name_this_thread``
    :param work: what it does
    """

    def run() -> None:
        name_this_thread(name)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
