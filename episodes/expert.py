# SPDX-License-Identifier: Apache-2.0
"""
The scripted two-arm cube transfer: waypoints, inverse kinematics and the simulated scene.

A damped least-squares solver turns each timed waypoint of a tool into six joint angles; the joint
targets move smoothly between them. The scene, its physics and its reward are gym-aloha's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from dm_control import mujoco
from dm_control.mujoco.wrapper import mjbindings
from dm_control.rl import control
from gym_aloha.constants import ASSETS_DIR
from gym_aloha.tasks import sim
from gym_aloha.utils import sample_box_pose
from numpy.typing import NDArray

Array = NDArray[np.float64]

ARMS = ('left', 'right')
KEYFRAME_NS = 30_000_000
#: Ends of the phases grasp, carry, hand over and part in the times that the script uses [s].
PHASE_ENDS_S = (2.6, 4.8, 6.7, 9.0)
#: How much the pace of a phase may differ between seeds, each way [1].
PACE_SPREAD = 0.15
#: Distance from the gripper link to the point between the finger pads [m].
TOOL_OFFSET = 0.142
CUBE_HALF = 0.02
OPEN, CLOSED = 1.0, 0.0
#: Largest change of a joint in one step of the solver [rad].
LONGEST_STEP = 0.1
#: Wrist angle that the solver starts from [rad].
BENT_WRIST = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Waypoint:
    """
    One pose of one tool.

    :param time_s: when the tool is there, in script time [s]
    :param xyz: point between the finger pads, world frame [m]
    :param pitch: angle of the approach direction below the horizon [rad]
    :param roll: angle about the approach direction [rad]
    """

    time_s: float
    xyz: tuple[float, float, float]
    pitch: float = 0.0
    roll: float = 0.0


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


class TransferCube(sim.TransferCubeTask):
    """gym-aloha's task without its three renderings a step."""

    def get_observation(self, physics: mujoco.Physics) -> dict[str, Array]:
        """Return the measured joints and their rates, each ``(14,)``."""
        return {'position': self.get_qpos(physics), 'velocity': self.get_qvel(physics)}


def phase_ends(seed: int, seconds: float) -> Array:
    """
    Return when each phase ends in the episode ``(4,)`` [s]; the last ends at ``seconds``.

    Every seed has its own pace, so that episodes replayed together do not switch together.
    """
    lengths = np.diff(PHASE_ENDS_S, prepend=0.0)
    lengths *= np.random.default_rng(seed).uniform(
        1 - PACE_SPREAD, 1 + PACE_SPREAD, len(PHASE_ENDS_S)
    )
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


def rotation(arm: str, pitch: float, roll: float) -> Array:
    """Return the gripper link's axes ``(3, 3)``: x approaches, the fingers close along y."""
    facing = np.diag([1.0, 1.0, 1.0]) if arm == 'left' else np.diag([-1.0, -1.0, 1.0])
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    pitched = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rolled = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    axes: Array = facing @ pitched @ rolled
    return axes


class Kinematics:
    """Joint angles of one arm for its waypoints, found on a copy of the scene."""

    def __init__(self, physics: mujoco.Physics, arm: str) -> None:
        self._physics = physics.copy(share_model=True)
        self._arm = arm
        self._body = physics.model.name2id(f'vx300s_{arm}/gripper_link', 'body')
        first = 8 * ARMS.index(arm)
        self._columns = slice(first, first + 6)
        self._limits = physics.model.jnt_range[self._columns].T

    def path(self, waypoints: Sequence[Waypoint]) -> Array:
        """
        Return the joints ``(1 + waypoints, 6)`` [rad] of the present pose and of each waypoint.

        :raises ValueError: a waypoint is out of reach
        """
        joints = self._physics.data.qpos[self._columns]
        rows = [joints.copy()]
        joints[4] = BENT_WRIST  # the side of the wrist's singularity that needs no half turn
        rows += [self._solve(waypoint) for waypoint in waypoints]
        return np.stack(rows)

    def _solve(self, waypoint: Waypoint, iterations: int = 200) -> Array:
        """
        Return the six joints that reach a waypoint, near the last ones.

        Source: damped least squares (Buss, 2004), clipped to the joints' range at each step.
        """
        data, model = self._physics.data, self._physics.model
        wanted = rotation(self._arm, waypoint.pitch, waypoint.roll)
        jac = np.zeros((6, model.nv))
        for _ in range(iterations):
            self._physics.forward()
            axes = data.xmat[self._body].reshape(3, 3)
            point = data.xpos[self._body] + TOOL_OFFSET * axes[:, 0]
            turn = 0.5 * np.cross(axes.T, wanted.T).sum(axis=0)
            error = np.concatenate([waypoint.xyz - point, turn])
            if np.abs(error).max() < 1e-5:
                return np.array(data.qpos[self._columns])
            mjbindings.mjlib.mj_jac(
                model.ptr, data.ptr, jac[:3], jac[3:], point.reshape(3, 1), self._body
            )
            arm_jac = jac[:, self._columns]
            damped = arm_jac @ arm_jac.T + 1e-4 * np.eye(6)
            step = arm_jac.T @ np.linalg.solve(damped, error)
            step /= max(1.0, np.abs(step).max() / LONGEST_STEP)
            data.qpos[self._columns] = np.clip(data.qpos[self._columns] + step, *self._limits)
        raise ValueError(f'the {self._arm} arm does not reach {waypoint}: choose another seed')


def joints_at(path: Array, waypoints: Sequence[Waypoint], time_s: float) -> Array:
    """Return the six joint targets [rad] at a script time, minimum-jerk between waypoints."""
    times = [0.0, *(waypoint.time_s for waypoint in waypoints)]
    after = next((i for i, at in enumerate(times) if at > time_s), len(times) - 1)
    s = min(1.0, (time_s - times[after - 1]) / (times[after] - times[after - 1]))
    s = s**3 * (10 - 15 * s + 6 * s * s)
    blend: Array = (1 - s) * path[after - 1] + s * path[after]
    return blend


def run(environment: control.Environment, ends_s: Array) -> Iterator[Keyframe]:
    """
    Yield the keyframes of the transfer; while one is out, the scene stands still for cameras.

    :param environment: from :func:`make_environment`, fresh
    :param ends_s: from :func:`phase_ends`; the episode is as long as its last [s]
    """
    physics, task = environment.physics, environment.task
    tracks = script(physics.named.data.xpos['box'])
    paths = {arm: Kinematics(physics, arm).path(tracks[arm].waypoints) for arm in ARMS}
    for index in range(num_keyframes(ends_s[-1])):
        time_s = float(np.interp(index * KEYFRAME_NS / 1e9, (0.0, *ends_s), (0.0, *PHASE_ENDS_S)))
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
