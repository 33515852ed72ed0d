# SPDX-License-Identifier: Apache-2.0
"""What can be served, for a person; without torch."""

from dataclasses import dataclass

_STAGES = 'ViT, Prefill, Action'


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One kind of model.

    :param name: what the setting ``model`` is
    :param what: it is
    :param stages: that it has
    :param cameras: that it wants
    :param sizes: of its weights and chunks
    :param rtc: variants of real-time chunking
    :param page: where it is documented
    """

    name: str
    what: str
    stages: str
    cameras: str
    sizes: str
    rtc: str
    page: str


_PAGE, _FAMILIES_PAGE = 'docs/models.md', 'docs/model_families.md'


def catalogue() -> tuple[Entry, ...]:
    """Return every kind of model that ``make_model`` can make."""
    return (
        Entry(
            name='tiny',
            what='π0.5 in small, random weights from model_seed',
            stages=_STAGES,
            cameras='top, left_wrist, right_wrist; 224x320',
            sizes='0.49 M weights, 14 joints, H = 16',
            rtc='guided (identity or vjp), none',
            page=_PAGE,
        ),
        Entry(
            name='FOLDER of type pi05, or of openpi',
            what='π0.5 as LeRobot or openpi lay it out',
            stages=_STAGES,
            cameras='those of config.json',
            sizes='3.35 G weights, H = 50 as published',
            rtc='guided (identity or vjp), hard_prefix if trained for it, none',
            page=_PAGE,
        ),
        Entry(
            name='FOLDER of type smolvla',
            what='SmolVLA as LeRobot lays it out',
            stages=_STAGES,
            cameras='those of config.json, 512x512',
            sizes='450 M weights, H = 50 as published',
            rtc='guided (identity or vjp), none',
            page=_FAMILIES_PAGE,
        ),
        Entry(
            name='tiny_smolvla, tiny_wall',
            what='these families in small, random weights from model_seed',
            stages=_STAGES,
            cameras='top, left_wrist, right_wrist; 224x320, tiny_wall 224x288 for wrists',
            sizes='14 joints, H = 16',
            rtc='guided (identity or vjp), none',
            page=_FAMILIES_PAGE,
        ),
        Entry(
            name='random_smolvla, random_wall_oss_05, random_vla_2b',
            what='published sizes with random weights, to load a device',
            stages=_STAGES,
            cameras='top, left_wrist, right_wrist',
            sizes='0.4 G, 4.2 G and 2.4 G weights, 14 joints, H = 16',
            rtc='guided (identity or vjp), none',
            page=_FAMILIES_PAGE,
        ),
        Entry(
            name='python:package.module:factory',
            what='any policy object with one call, such as a LeRobot policy',
            stages='Action',
            cameras='those of its contract',
            sizes='its own',
            rtc='its own; it is told the leftover',
            page=_PAGE,
        ),
        Entry(
            name='table, table:CALIBRATION',
            what='no network: takes the times of a calibration, to plan capacity',
            stages=_STAGES,
            cameras='top, left_wrist, right_wrist; 224x320',
            sizes='none, 14 joints, H = 16',
            rtc='none; committed rows are taken over',
            page=_PAGE,
        ),
        Entry(
            name='fixed:MS',
            what='no network: every request takes MS milliseconds, to see what the server costs',
            stages='Action',
            cameras='top, left_wrist, right_wrist; 224x320',
            sizes='none, 14 joints, H = 16',
            rtc='none; committed rows are taken over',
            page=_PAGE,
        ),
        Entry(
            name='echo',
            what='no network: answers with the state, to test a set-up',
            stages=_STAGES,
            cameras='echo_cameras, else top, left_wrist, right_wrist; 224x320',
            sizes='none, echo_joints or 14 joints, H = 16',
            rtc='none; committed rows are taken over',
            page=_PAGE,
        ),
    )
