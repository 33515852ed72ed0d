# SPDX-License-Identifier: Apache-2.0
"""A process of a load generator that plays its plan on paper: at once, with delays as told."""

import argparse
import sys
from pathlib import Path

import numpy as np

from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.load_signals import DONE, PROGRESS, READY, say, wait_for_start
from xinfer_ros.robot.request_log import PARTS, RequestLog


def main() -> int:
    """Write the log that robots of the plan would have left."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--plan', type=Path)
    parser.add_argument('--late-ms', type=float, default=0.0)
    parser.add_argument('--fail', default='')
    own = parser.parse_args()
    if own.fail:
        print(own.fail, flush=True)
        return 3
    plan = LoadPlan.read(own.plan)
    say(sys.stdout, READY)
    start_ns = wait_for_start(sys.stdin)
    assert start_ns is not None
    count = plan.duration_ns // plan.period_ns
    steps = np.arange(count) * plan.period_ns
    sent = np.concatenate([start_ns + first + steps for first in plan.first_sends_ns])
    say(sys.stdout, PROGRESS, len(sent), len(sent))
    RequestLog(
        robot=np.repeat(np.array(plan.robots), count),
        due_ns=sent - round(own.late_ms * 1e6),
        sent_ns=sent,
        received_ns=sent + 10_000_000,
        budget_ns=np.full(len(sent), plan.budgets_ns[0][0]),
        reason=np.zeros(len(sent), np.int64),
        times_ns=np.zeros((len(sent), len(PARTS)), np.int64),
        wrong=np.zeros(len(plan.robots), np.int64),
        lag_ns=np.zeros(1, np.int64),
    ).save(Path(plan.log))
    say(sys.stdout, DONE)
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
