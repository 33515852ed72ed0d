# SPDX-License-Identifier: Apache-2.0
"""Names of threads as the operating system shows them."""

import threading
from pathlib import Path

from xinfer_ros.core.thread_name import MAX_BYTES, start_thread


def _shown() -> str:
    return Path(f'/proc/self/task/{threading.get_native_id()}/comm').read_text().strip()


def test_a_thread_has_its_name_for_python_and_for_the_system() -> None:
    found: list[str] = []

    def work() -> None:
        found.extend((_shown(), threading.current_thread().name))

    start_thread('decode', work).join()
    assert found == ['decode', 'decode']


def test_a_long_name_is_cut() -> None:
    found: list[str] = []
    start_thread('decoder-of-pictures', lambda: found.append(_shown())).join()
    assert found == ['decoder-of-pictures'[:MAX_BYTES]]
