# SPDX-License-Identifier: Apache-2.0
"""Raw pictures on the way."""

import fcntl
import xml.etree.ElementTree as ElementTree
from array import array
from pathlib import Path

import pytest

from xinfer_ros.msg import CameraFrame
from xinfer_ros.ros.large_messages import (
    MAX_BYTES_ON_A_NETWORK,
    NEEDED_BYTES,
    PROFILE_VARIABLE,
    SizeWarning,
    make_room,
    stays_on_this_host,
    sweep,
)

CONFIG = Path(__file__).parents[2] / 'config'
LOCAL = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}


def _frame(size: int, *, compressed: bool = False) -> CameraFrame:
    return CameraFrame(compressed=compressed, data=array('B', bytes(size)))


@pytest.mark.parametrize(
    'environ',
    [
        {},
        {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'},
        LOCAL | {PROFILE_VARIABLE: '/own.xml'},
        LOCAL | {'FASTRTPS_DEFAULT_PROFILES_FILE': '/own.xml'},
    ],
)
def test_a_network_and_the_profile_of_a_user_are_left_alone(environ: dict[str, str]) -> None:
    before = dict(environ)
    assert not make_room(environ, CONFIG)
    assert environ == before


def test_no_profile_is_no_error(tmp_path: Path) -> None:
    assert not make_room(dict(LOCAL), tmp_path)


def test_profile_has_the_room_that_is_asked_of_shared_memory() -> None:
    tree = ElementTree.parse(CONFIG / 'fastdds.xml')
    size = tree.find('.//{*}segment_size')
    assert size is not None
    assert 32 * int(size.text or '') == NEEDED_BYTES


@pytest.mark.parametrize(
    ('environ', 'local'),
    [(LOCAL, True), ({'ROS_LOCALHOST_ONLY': '1'}, True), ({}, False)],
)
def test_range_of_discovery_says_whether_anything_leaves_this_host(
    environ: dict[str, str], local: bool
) -> None:
    assert stays_on_this_host(environ) is local


def test_raw_pictures_on_a_network_are_warned_of_once_with_their_size() -> None:
    """TR-01: an observation above 256 KB on a link that is no loopback."""
    warning = SizeWarning(is_local=False)
    half = MAX_BYTES_ON_A_NETWORK // 2
    assert not warning.words([_frame(half), _frame(half)])
    assert not warning.words([_frame(10 * half, compressed=True)])
    words = warning.words([_frame(half), _frame(half + 1)])
    assert f'{2 * half + 1} bytes of raw pictures' in words
    assert 'camera_transport' in words
    assert not warning.words([_frame(10 * half)])


def test_raw_pictures_within_a_host_are_not_warned_of() -> None:
    assert not SizeWarning(is_local=True).words([_frame(10 * MAX_BYTES_ON_A_NETWORK)])


def test_segments_of_killed_processes_are_swept_and_those_in_use_stay(tmp_path: Path) -> None:
    """64 MB a killed process would fill the memory of a host."""
    for name in ('fastdds_dead', 'fastdds_dead_el', 'fastdds_live', 'fastdds_live_el', 'other_el'):
        (tmp_path / name).touch()
    (tmp_path / 'fastdds_young_el').touch()  # its owner has not locked it yet, and has no segment
    with (tmp_path / 'fastdds_live_el').open('rb') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert sweep(tmp_path) == 1
        assert sweep(tmp_path) == 0
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ['fastdds_live', 'fastdds_live_el', 'fastdds_young_el', 'other_el']
