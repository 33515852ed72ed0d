# SPDX-License-Identifier: Apache-2.0
"""Raw pictures on the way: room for them on one host, a warning on a network."""

import fcntl
import os
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

PROFILE = 'fastdds.xml'
PROFILE_VARIABLE = 'FASTDDS_DEFAULT_PROFILES_FILE'
OLD_PROFILE_VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
RANGE_VARIABLE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
SHARED_MEMORY = Path('/dev/shm')
SEGMENT, LOCK = 'fastdds_', '_el'  # a segment of Fast DDS, and the file that its owner locks
# of config/fastdds.xml, for the 32 participants that a host may have
NEEDED_BYTES = 32 * 64 * 1024 * 1024
MAX_BYTES_ON_A_NETWORK = 256 * 1024


def stays_on_this_host(environ: Mapping[str, str]) -> bool:
    """Return whether ROS is told to reach nobody but this host."""
    return environ.get(RANGE_VARIABLE) == 'LOCALHOST' or environ.get('ROS_LOCALHOST_ONLY') == '1'


def make_room(environ: MutableMapping[str, str], config: Path) -> bool:
    """
    Let Fast DDS have large segments of shared memory, if all nodes are on this host.

    A profile that the user has chosen stays, and so does the default where shared memory is short,
    as in a container. To be called before rclpy is up; other middleware ignores it.

    :param environ: of this process; changed
    :param config: folder of the profile
    :returns: whether the profile is used
    """
    profile = config / PROFILE
    given = PROFILE_VARIABLE in environ or OLD_PROFILE_VARIABLE in environ
    if given or not stays_on_this_host(environ) or not profile.is_file():
        return False
    sweep(SHARED_MEMORY)
    if _free_bytes(SHARED_MEMORY) < NEEDED_BYTES:
        return False
    environ[PROFILE_VARIABLE] = str(profile)
    return True


def sweep(folder: Path) -> int:
    """
    Remove the segments of processes that were killed, which nobody else does; return how many.

    An owner locks its file before it makes the segment, so a segment without a lock has no owner.

    :param folder: where shared memory lies
    """
    swept = 0
    for lock in folder.glob(f'{SEGMENT}*{LOCK}'):
        segment = lock.with_name(lock.name.removesuffix(LOCK))
        try:
            if segment.is_file() and _is_free(lock):
                segment.unlink()
                lock.unlink()
                swept += 1
        except OSError:
            continue  # of another user, or another sweep has it
    return swept


def _is_free(lock: Path) -> bool:
    with lock.open('rb') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _free_bytes(folder: Path) -> int:
    try:
        facts = os.statvfs(folder)
    except OSError:
        return 0
    return facts.f_bavail * facts.f_frsize


class SizeWarning:
    """
    Warns once of observations that a network will not carry well.

    One lost fragment loses a whole message, and incomplete ones fill the kernel's buffer.

    :param is_local: whether they stay on this host
    """

    def __init__(self, *, is_local: bool) -> None:
        self._is_due = not is_local

    def words(self, frames: Iterable[Any]) -> str:
        """
        Return the warning the first time that it is due, else nothing.

        :param frames: pictures of an observation, as msg/CameraFrame.msg
        """
        if not self._is_due:
            return ''
        raw = [frame for frame in frames if not frame.compressed]
        size = sum(len(frame.data) for frame in raw)
        if size <= MAX_BYTES_ON_A_NETWORK:
            return ''
        self._is_due = False
        return (
            f'an observation has {size} bytes of raw pictures; above {MAX_BYTES_ON_A_NETWORK} a '
            'network loses many. Set camera_transport to compressed, or '
            f'{RANGE_VARIABLE}=LOCALHOST if the server is on this host too'
        )
