# SPDX-License-Identifier: Apache-2.0
"""Real-time priority where it is granted, and no harm where it is not."""

import subprocess
import sys

PROGRAM = """
import os, resource, sys, threading
from xinfer_ros.ros.real_time import ask_for_real_time

if sys.argv[1] == 'without':
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    if os.getuid() == 0:
        os.setuid(65534)
leave = threading.Event()
earlier = threading.Thread(target=leave.wait)
earlier.start()
granted = ask_for_real_time()
later = threading.Thread(target=leave.wait)
later.start()
policies = {os.sched_getscheduler(thread.native_id) for thread in (earlier, later)}
leave.set()
print(granted, policies == {os.SCHED_FIFO if granted else os.SCHED_OTHER})
"""


def _run(argument: str) -> list[str]:
    command = [sys.executable, '-c', PROGRAM, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.split()


def test_every_thread_has_what_was_granted() -> None:
    assert _run('as it is')[1] == 'True'


def test_without_the_right_nothing_changes() -> None:
    assert _run('without') == ['False', 'True']
