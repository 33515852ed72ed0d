# SPDX-License-Identifier: Apache-2.0
"""The bound of the brain tier: contexts fill a cache, and a brain is read from a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.plan_brain import BrainTier
from xinfer_ros.fleet.plan_brain_file import Brain, load_brain


@pytest.fixture(scope='module')
def usual() -> BrainTier:
    return BrainTier(Brain(), 120)


def test_usual_server_holds_what_the_simulator_admits(usual: BrainTier) -> None:
    assert usual.admitted == pytest.approx(23.5, abs=1.5)  # 23.0 to 24.0 simulated
    assert usual.calls_per_s() == pytest.approx(2.5, abs=0.15)  # 2.45 to 2.55 simulated


def test_half_the_robots_with_a_brain_make_twice_the_fleet(usual: BrainTier) -> None:
    assert usual.robots(0.5) == int(2 * usual.admitted)
    assert usual.robots(1.0) == int(usual.admitted)


def test_robots_that_are_busy_between_calls_call_less(usual: BrainTier) -> None:
    rates = [usual.calls_per_s(away_s) for away_s in (0.0, 10.0, 1000.0)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(usual.admitted / 1000.0, rel=0.01)


def test_a_smaller_cache_holds_fewer_episodes() -> None:
    brain = Brain()
    half = BrainTier(brain.with_cache(0.6 * brain.server.nominal_tokens), 120)
    assert half.admitted == pytest.approx(13.2, abs=1.0)  # 13.1 and 13.2 simulated


def test_one_episode_is_always_admitted() -> None:
    assert BrainTier(Brain().with_cache(100_000), 20).admitted == pytest.approx(1.0, abs=0.5)


def test_cache_without_room_for_one_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'allowed: 28,000, a first prompt, to 100,000,000'):
        Brain().with_cache(40_000)


def test_brain_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / 'brain.json'
    path.write_text(
        json.dumps(
            {
                'server': {'blocks': 2000, 'blocks_a_block': 1, 'partial_hits': True},
                'episodes': {'turns': {'median': 40}, 'no_gap': 0},
                'controller': {'admit_share': 0.8},
            }
        )
    )
    brain = load_brain(path)
    assert (brain.server.blocks, brain.server.partial_hits) == (2000, True)
    assert brain.server.blocks_a_block == 1.0
    assert (brain.episodes.turns.median, brain.episodes.turns.low) == (40, 6)
    assert brain.controller.admit_share == 0.8


@pytest.mark.parametrize(
    ('parts', 'part'),
    [
        ({'sever': {}}, 'sever is not known; did you mean server?'),
        ({'server': {'block': 3}}, 'server has no block; did you mean blocks?'),
        ({'server': {'blocks': 1.5}}, 'server: blocks is 1.5; allowed: a whole number >= 0'),
        ({'server': {'blocks': True}}, 'blocks is True; allowed: a whole number >= 0'),
        ({'server': {'step_s': -1}}, 'step_s is -1; allowed: a number >= 0'),
        ({'server': {'block_tokens': 0}}, 'block_tokens is 0; 1 or more is needed'),
        ({'server': {'step_s': 0}}, 'step_s is 0.0; 1e-09 or more is needed'),
        ({'episodes': {'turns': {'low': 1}}}, '2 <= low <= median <= high is needed'),
        (
            {'episodes': {'first_prompt': {'median': 6000}}},
            'episodes: first_prompt: low, median, high are 19000, 6000, 80000; 1 <= low',
        ),
        ({'episodes': {'turns': {'high': 1e6}}}, 'turns are up to 1e+06; 1000 is allowed'),
        ({'episodes': {'appended_sigma': 1000}}, 'appended_sigma is 1000; 0 to 3 is allowed'),
        ({'episodes': {'output': {'sigma': 9}}}, 'output: sigma is 9; 0 to 3 is allowed'),
        ({'episodes': {'appended_shares': [0] * 7}}, 'they must rise from 0 to 1'),
        ({'episodes': {'appended_tokens': [9, 8, 7, 6, 5, 4, 3]}}, 'must rise, to 10,000,000'),
        ({'episodes': {'no_gap': 5}}, 'no_gap is 5.0, gap_median_s 1.71'),
        ({'episodes': {'gap_median_s': 0}}, '0.001 <= gap_median_s <= max_gap_s, 7.5'),
        ({'episodes': {'max_context': 10}}, 'max_context is 10; allowed: 28,000, a first prompt'),
        ({'server': {'partial_hits': 1}}, 'partial_hits is 1; allowed: true or false'),
        ({'episodes': {'turns': 3}}, 'turns is 3; allowed: an object of median, sigma'),
        ({'episodes': {'appended_tokens': [1]}}, 'allowed: a list of 7 numbers >= 0'),
        ({'controller': {'admit_share': 7}}, 'admit_share is 7 (int); allowed: a number from 0.1'),
        ([], 'an object of server, episodes, controller is needed'),
    ],
)
def test_mistake_in_a_file_is_told(tmp_path: Path, parts: Any, part: str) -> None:
    path = tmp_path / 'brain.json'
    path.write_text(json.dumps(parts))
    with pytest.raises(ConfigError) as refused:
        load_brain(path)
    assert part in str(refused.value)


def test_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='cannot be read: No such file'):
        load_brain(tmp_path / 'none.json')
    (tmp_path / 'bad.json').write_text('{')
    with pytest.raises(ConfigError, match='is not JSON'):
        load_brain(tmp_path / 'bad.json')
