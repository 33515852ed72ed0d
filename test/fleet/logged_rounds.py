# SPDX-License-Identifier: Apache-2.0
"""Decision logs of simulated rounds, for the tests of what reads them."""

from pathlib import Path

from xinfer_ros.fleet.round_log import log_round
from xinfer_ros.fleet.rounds import RoundTask
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sched.log_files import DecisionLog, load_log
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sim.scenario import Round
from xinfer_ros.sim.workload import make_workload
from xinfer_ros.sim.world import World


def round_task(policy: str, robots: int = 18, slowdown: float = 1.1) -> RoundTask:
    """Return three seconds of a fleet on a device that is slower than its calibration."""
    calibration = load_calibration('paper')
    return RoundTask(
        policy=policy,
        settings=policy_settings(policy, calibration),
        workload=make_workload('alternating'),
        robots=robots,
        number=1,
        seed=1,
        calibration=calibration,
        world=World(slowdown=slowdown),
        round=Round(warm_up_s=0.0, end_s=3.0),
    )


def logged_round(folder: Path, policy: str, robots: int = 18) -> DecisionLog:
    """Return the decision log of such a round."""
    log_round(round_task(policy, robots), folder)
    return load_log(folder)
