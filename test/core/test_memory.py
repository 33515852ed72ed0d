# SPDX-License-Identifier: Apache-2.0
"""The memory of a process that serves."""

import subprocess
import sys

SCRIPT = """
import gc
from xinfer_ros.core.memory import settle
class Ring:
    pass
def make():
    ring = Ring()
    ring.itself = ring
settle()
frozen = gc.get_freeze_count()
make()
print(frozen > 1000, gc.collect() >= 1, gc.get_freeze_count() == frozen)
"""


def test_what_was_loaded_is_left_alone_and_later_garbage_is_collected() -> None:
    """SL-07: nothing that comes later is kept by it."""
    done = subprocess.run([sys.executable, '-c', SCRIPT], capture_output=True, text=True)
    assert done.stdout.split() == ['True', 'True', 'True'], done.stderr
