# SPDX-License-Identifier: Apache-2.0
"""A body without physics, and a source of chunks that plans along a recorded motion."""

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows
from xinfer_ros.sim.closed_loop import Tie
from xinfer_ros.sim.closed_loop_pull import pulled

#: How soon the body follows a command, and how soon a chunk is on its own way [s].
FOLLOWS_S, OWN_WAY_S = 0.05, 0.25
#: Periods of the deviations of a chunk: slow against the keyframes [s].
PERIODS_S = (1.0, 3.0)


class FollowingPlant:
    """
    A body that follows each command a little late; it is never done.

    :param start: measured joints ``(num_joints,)``
    :param spacing_ns: keyframe spacing [ns]
    """

    def __init__(self, start: Rows, spacing_ns: int) -> None:
        self._joints = start.astype(np.float64)
        self._share = 1.0 - np.exp(-spacing_ns / 1e9 / FOLLOWS_S)

    def state(self) -> Rows:
        """Return the measured joints ``(num_joints,)``."""
        return self._joints.astype(np.float32)

    def view(self) -> Rows:
        """Return what the model is shown: the measured joints."""
        return self.state()

    def apply(self, command: Rows) -> None:
        """Follow a command for one keyframe."""
        self._joints += self._share * (command - self._joints)

    def is_done(self) -> bool:
        """Return False."""
        return False


def followed(motion: Rows, start: Rows, spacing_ns: int) -> Rows:
    """Return what the body measures before each row ``(T, num_joints)`` if it plays a motion."""
    plant = FollowingPlant(start, spacing_ns)
    measured = []
    for command in motion:
        measured.append(plant.state())
        plant.apply(command)
    return np.array(measured)


class RecordingSource:
    """
    Plans along a recorded motion from the row that is next, as a model that has learnt it.

    Each inference deviates in its own smooth way, so that two of them disagree, as samples of a
    VLA do. A chunk begins as far off the recording as the robot is seen to be, or where the
    promised rows end, and then goes its own way. Joints that switch are told as recorded.

    :param motion: recorded commands ``(T, num_joints)``; after the end its last row goes on
    :param start: measured joints before the first of them
    :param spacing_ns: keyframe spacing [ns]
    :param horizon: rows of a chunk, ``H``
    :param deviation: standard deviation of each inference from the recording [rad]
    :param switching: ``(num_joints,)`` bool, joints that are open or closed
    :param seed: of the deviations
    """

    def __init__(
        self,
        motion: Rows,
        start: Rows,
        *,
        spacing_ns: int,
        horizon: int,
        deviation: float,
        switching: npt.NDArray[np.bool_],
        seed: int,
    ) -> None:
        self._motion, self._horizon, self._switching = motion, horizon, switching
        self._followed = followed(motion, start, spacing_ns)
        self._deviation, self._random = deviation, np.random.default_rng(seed)
        self._times_s = np.arange(horizon) * spacing_ns / 1e9

    def chunk(self, view: Rows, tie: Tie) -> Rows:
        """Return rows ``(H, num_joints)``."""
        rows = np.arange(tie.executed_steps, tie.executed_steps + self._horizon)
        recorded = self._motion[np.minimum(rows, len(self._motion) - 1)]
        deviations, first = self._deviations(), max(tie.frozen_steps - 1, 0)
        off = self._seen_off(view, tie)
        if tie.frozen_steps:
            off = tie.leftover[first] - recorded[first]
        gone = np.maximum(self._times_s - self._times_s[first], 0.0)
        staying = np.exp(-gone / OWN_WAY_S)[:, np.newaxis]
        plan = recorded + deviations + staying * (off - deviations[first])
        return np.where(self._switching, recorded, pulled(plan, tie)).astype(np.float32)

    def _seen_off(self, view: Rows, tie: Tie) -> Rows:
        """Return how far the measured joints are off those of a robot on its way."""
        row = min(max(tie.executed_steps - 1, 0), len(self._followed) - 1)
        off: Rows = view - self._followed[row]
        return off

    def _deviations(self) -> npt.NDArray[np.float64]:
        """Return a smooth wave for each joint, of random period and phase ``(H, num_joints)``."""
        joints = self._motion.shape[1]
        periods = self._random.uniform(*PERIODS_S, joints)
        phases = self._random.uniform(0.0, 2.0 * np.pi, joints)
        angles = 2.0 * np.pi * self._times_s[:, np.newaxis] / periods + phases
        waves: npt.NDArray[np.float64] = self._deviation * np.sqrt(2.0) * np.sin(angles)
        return waves
