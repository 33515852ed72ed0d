# SPDX-License-Identifier: Apache-2.0
"""
The scripted two-arm cube transfer: timed waypoints, and the simulated scene for cameras.

Joint targets are solved for each waypoint of a tool and move smoothly between them. The scene,
its physics and its reward are gym-aloha's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dm_control import mujoco
from dm_control.rl import control
from gym_aloha.constants import ASSETS_DIR
from gym_aloha.tasks import sim
from gym_aloha.utils import sample_box_pose

from xinfer_ros.physics.kinematics import ARMS, BENT_WRIST, ArmKinematics, ToolPose
from xinfer_ros.physics.scene_view import CLOSED, CUBE_HALF, OPEN

Array = npt.NDArray[np.float64]

KEYFRAME_NS = 30_000_000
#: Ends of the phases grasp, carry, hand over and part in the times that the script uses [s].
PHASE_ENDS_S = (2.6, 4.8, 6.7, 9.0)
#: How much the pace of a phase may differ between seeds, each way [1].
PACE_SPREAD = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Waypoint(ToolPose):
    """
    One pose of one tool at one time.

    :param time_s: when the tool is there, in script time [s]
    """

    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The waypoints of one arm and its gripper commands ``(time_s, opening)``, in time order."""

    waypoints: tuple[Waypoint, ...]
    gripper: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyframe:
    """
    What is known at one keyframe, before its command acts.

    :param position: measured joints ``(14,)`` [rad; gripper 0 closed to 1 open]
    :param velocity: their rates ``(14,)`` [1/s]
    :param command: joint targets ``(14,)`` that act until the next keyframe
    :param reward: gym-aloha's reward at this moment, 4 is a transfer clear of the table
    """

    position: Array
    velocity: Array
    command: Array
    reward: int


class TransferCube(sim.TransferCubeTask):  # type: ignore[misc]  # it has no types
    """gym-aloha's task without its three renderings a step."""

    def get_observation(self, physics: mujoco.Physics) -> dict[str, Array]:
        """Return the measured joints and their rates, each ``(14,)``."""
        return {'position': self.get_qpos(physics), 'velocity': self.get_qvel(physics)}


def phase_ends(seed: int, seconds: float, spread: float = PACE_SPREAD) -> Array:
    """
    Return when each phase ends in the episode ``(4,)`` [s]; the last ends at ``seconds``.

    Every seed has its own pace, so that episodes replayed together do not switch together.

    :param spread: how much the pace of a phase may differ between seeds, each way
    """
    lengths = np.diff(PHASE_ENDS_S, prepend=0.0)
    lengths *= np.random.default_rng(seed).uniform(1 - spread, 1 + spread, len(PHASE_ENDS_S))
    ends: Array = np.cumsum(lengths) * seconds / lengths.sum()
    return ends


def make_environment(seed: int) -> control.Environment:
    """
    Return the scene, reset, with the cube at rest where gym-aloha's sampler puts it for the seed.

    :param seed: seed of the cube's place
    """
    pose = sample_box_pose(seed)
    pose[2] = CUBE_HALF  # on the table, not dropped onto it
    sim.BOX_POSE[0] = pose
    physics = mujoco.Physics.from_xml_path(str(ASSETS_DIR / 'bimanual_viperx_transfer_cube.xml'))
    environment = control.Environment(
        physics, TransferCube(random=seed), control_timestep=KEYFRAME_NS / 1e9
    )
    environment.reset()
    return environment


def script(cube: Sequence[float]) -> dict[str, Track]:
    """
    Return the motion of both arms for a cube lying at ``cube`` [m].

    The right arm grips, lifts and carries; the left arm takes over in mid-air and carries on.
    """
    x, y = float(cube[0]), float(cube[1])
    down = np.deg2rad(60.0)
    meet = (0.0, 0.5, 0.25)
    quarter = np.pi / 2
    right = Track(
        waypoints=(
            Waypoint(time_s=1.3, xyz=(x, y, 0.12), pitch=down),
            Waypoint(time_s=2.0, xyz=(x, y, 0.02), pitch=down),
            Waypoint(time_s=2.6, xyz=(x, y, 0.02), pitch=down),
            Waypoint(time_s=3.4, xyz=(x, y, 0.16), pitch=down),
            Waypoint(time_s=4.5, xyz=meet, pitch=down),
            Waypoint(time_s=6.8, xyz=meet, pitch=down),
            Waypoint(time_s=7.4, xyz=(0.07, 0.5, 0.36), pitch=down),
            Waypoint(time_s=8.6, xyz=(0.2, 0.5, 0.3), pitch=0.5),
        ),
        gripper=((0.5, OPEN), (2.1, CLOSED), (6.2, OPEN), (8.0, CLOSED)),
    )
    left = Track(
        waypoints=(
            Waypoint(time_s=1.5, xyz=(-0.2, 0.5, 0.3)),
            Waypoint(time_s=4.2, xyz=(-0.12, 0.5, 0.245), roll=quarter),
            Waypoint(time_s=4.8, xyz=(-0.12, 0.5, 0.245), roll=quarter),
            Waypoint(time_s=5.5, xyz=(-0.012, 0.5, 0.245), roll=quarter),
            Waypoint(time_s=6.7, xyz=(-0.012, 0.5, 0.245), roll=quarter),
            Waypoint(time_s=8.6, xyz=(-0.2, 0.5, 0.25), roll=quarter),
        ),
        gripper=((3.6, OPEN), (5.6, CLOSED)),
    )
    return {'left': left, 'right': right}


def gripper_at(track: Track, time_s: float) -> float:
    """Return the commanded opening of a gripper, 0 closed to 1 open, at a script time [s]."""
    return next((opening for at, opening in reversed(track.gripper) if at <= time_s), CLOSED)


def waypoint_joints(physics: mujoco.Physics, arm: str, waypoints: Sequence[Waypoint]) -> Array:
    """
    Return the joints ``(1 + waypoints, 6)`` [rad] of the present pose and of each waypoint.

    :raises ValueError: a waypoint is out of reach
    """
    kinematics = ArmKinematics(physics.model.ptr, arm, physics.data.qpos)
    first = 8 * ARMS.index(arm)
    rows = [np.array(physics.data.qpos[first : first + 6])]
    start = rows[0].copy()
    start[4] = BENT_WRIST
    for waypoint in waypoints:
        start = kinematics.reach(waypoint, start)
        rows.append(start)
    return np.stack(rows)


def joints_at(path: Array, waypoints: Sequence[Waypoint], time_s: float) -> Array:
    """Return the six joint targets [rad] at a script time, minimum-jerk between waypoints."""
    times = [0.0, *(waypoint.time_s for waypoint in waypoints)]
    after = next((i for i, at in enumerate(times) if at > time_s), len(times) - 1)
    s = min(1.0, (time_s - times[after - 1]) / (times[after] - times[after - 1]))
    s = s**3 * (10 - 15 * s + 6 * s * s)
    blend: Array = (1 - s) * path[after - 1] + s * path[after]
    return blend


def gripper_rows(ends_s: Array) -> Array:
    """Return what the grippers are told, left and right, at each keyframe ``(keyframes, 2)``."""
    tracks = script((0.0, 0.5))  # the place of the cube changes nothing about the grippers
    return np.array(
        [
            [gripper_at(tracks[arm], script_time(row, ends_s)) for arm in ARMS]
            for row in range(num_keyframes(ends_s[-1]))
        ]
    )


def script_time(keyframe: int, ends_s: Array) -> float:
    """Return the time in the script at which a keyframe is [s]."""
    return float(np.interp(keyframe * KEYFRAME_NS / 1e9, (0.0, *ends_s), (0.0, *PHASE_ENDS_S)))


def run(environment: control.Environment, ends_s: Array) -> Iterator[Keyframe]:
    """
    Yield the keyframes of the transfer; while one is out, the scene stands still for cameras.

    :param environment: from :func:`make_environment`, fresh
    :param ends_s: from :func:`phase_ends`; the episode is as long as its last [s]
    """
    physics, task = environment.physics, environment.task
    tracks = script(physics.named.data.xpos['box'])
    paths = {arm: waypoint_joints(physics, arm, tracks[arm].waypoints) for arm in ARMS}
    for index in range(num_keyframes(ends_s[-1])):
        time_s = script_time(index, ends_s)
        targets: list[float] = []
        for arm in ARMS:
            track = tracks[arm]
            targets += [*joints_at(paths[arm], track.waypoints, time_s), gripper_at(track, time_s)]
        command = np.array(targets)
        observation = task.get_observation(physics)
        yield Keyframe(
            position=observation['position'],
            velocity=observation['velocity'],
            command=command,
            reward=task.get_reward(physics),
        )
        environment.step(command)


def num_keyframes(seconds: float) -> int:
    """Return how many keyframes an episode of this length has."""
    return round(seconds * 1e9 / KEYFRAME_NS)
