# SPDX-License-Identifier: Apache-2.0
"""What emulated robots send: messages of recorded moments, packed before anything is timed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.observation import CameraFrame
from xinfer_ros.episodes.episode import Episode
from xinfer_ros.episodes.moments import moments
from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.errors import ConfigError
from xinfer_ros.msg import CameraFrame as CameraFrameMsg
from xinfer_ros.robot.joint_translation import JointTranslation
from xinfer_ros.ros.convert import byte_array


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedMoment:
    """A moment as it goes on the wire: joint state ``(joints,)`` float32, and camera frames."""

    state: npt.NDArray[np.float32]
    frames: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deck:
    """
    The moments of one episode.

    :param joint_names: columns of the states, as the model calls them
    :param cameras: names of the cameras, as the model calls them
    :param instruction: the task
    """

    joint_names: tuple[str, ...]
    cameras: tuple[str, ...]
    instruction: str
    moments: tuple[PackedMoment, ...]


def decks(
    episodes: Sequence[str], shipped: Path, config: ExecutorConfig, *, raw: bool
) -> list[Deck]:
    """
    Return a deck of each episode.

    :param config: of the executors that are emulated: names of cameras and joints, instruction
    :raises ConfigError: if an episode can't be read, or lacks what the executor needs
    """
    return [_deck(find_episode(text, shipped).read(), config, raw) for text in episodes]


def _deck(episode: Episode, config: ExecutorConfig, raw: bool) -> Deck:
    columns = [episode.joints.index(name) for name in _joints(episode, config)]
    names = JointTranslation(config.joint_names or episode.joints, config.model_joint_names)
    cameras = _cameras(episode, config)
    return Deck(
        joint_names=names.to_model(_joints(episode, config)),
        cameras=tuple(cameras),
        instruction=episode.task or config.instruction,
        moments=tuple(
            PackedMoment(state=moment.state[columns], frames=[_packed(f) for f in moment.frames])
            for moment in moments(episode, cameras, raw=raw)
        ),
    )


def _joints(episode: Episode, config: ExecutorConfig) -> tuple[str, ...]:
    wanted = config.joint_names or episode.joints
    missing = [name for name in wanted if name not in episode.joints]
    if missing:
        raise ConfigError(
            f'episode {episode.name} has no joint {", ".join(missing)}; it has '
            f'{", ".join(episode.joints)}'
        )
    return wanted


def _cameras(episode: Episode, config: ExecutorConfig) -> Mapping[str, str]:
    """Return the episode's name of each camera: that of its topic, else the same name."""
    known = {camera.name for camera in episode.cameras}

    def theirs(name: str, topic: str) -> str:
        word = topic.strip('/').removesuffix('/compressed').removesuffix('/image_raw')
        return word if word in known else name

    return {name: theirs(name, topic) for name, topic in config.topic_by_camera().items()}


def _packed(frame: CameraFrame) -> Any:
    return CameraFrameMsg(
        name=frame.name,
        compressed=frame.compressed,
        encoding=frame.encoding,
        height=frame.height,
        width=frame.width,
        step=frame.step,
        is_bigendian=frame.is_bigendian,
        data=byte_array(frame.data),
    )
