# SPDX-License-Identifier: Apache-2.0
"""Real-time priority, where the system grants it: a tick waits for no ordinary process."""

import logging
import os
from pathlib import Path

PRIORITY = 1  # the lowest: ros2_control's own loop, at 50 by default, goes first

log = logging.getLogger(__name__)


def ask_for_real_time() -> bool:
    """
    Give this process the lowest real-time priority, its present threads and those to come.

    All of them, since a thread that ticks may wait for what another one holds.

    :returns: whether it was granted; without the right to it nothing changes
    """
    try:
        for task in Path('/proc/self/task').iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError as error:
        log.info(
            'no real-time priority (%s): on a busy host ticks may be late; '
            'grant it with `ulimit -r 1`, or LimitRTPRIO=1 of systemd',
            error.strerror,
        )
        return False
    return True
