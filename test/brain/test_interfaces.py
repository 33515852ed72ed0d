# SPDX-License-Identifier: Apache-2.0
"""The constants of the ROS interfaces are those of the enums."""

import re
from enum import IntEnum
from pathlib import Path

import pytest

from xinfer_ros.brain.gateway.episode import Outcome, Phase
from xinfer_ros.brain.skill import SkillEnd

ROOT = Path(__file__).parents[2]


def _constants(path: str) -> list[dict[str, int]]:
    """Return the constants of each part of an interface file."""
    parts = (ROOT / path).read_text().split('\n---\n')
    return [
        {name: int(value) for name, value in re.findall(r'^uint8 ([A-Z_]+)=(\d+)', part, re.M)}
        for part in parts
    ]


@pytest.mark.parametrize(
    ('path', 'kind'), [('action/RunEpisode.action', Outcome), ('action/RunSkill.action', SkillEnd)]
)
def test_outcomes_are_those_of_the_result(path: str, kind: type[IntEnum]) -> None:
    assert _constants(path)[1] == {member.name: member.value for member in kind}


def test_phases_are_those_of_feedback_and_message() -> None:
    phases = {phase.name: phase.value for phase in Phase if phase is not Phase.ENDED}
    assert _constants('action/RunEpisode.action')[2] == phases
    shifted = {name: value + 1 for name, value in phases.items()}
    assert _constants('msg/BrainState.msg')[0] == {'NONE': 0, **shifted}
