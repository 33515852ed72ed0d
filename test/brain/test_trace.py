# SPDX-License-Identifier: Apache-2.0
"""Episodes are drawn with the published statistics."""

import numpy as np
import pytest

from xinfer_ros.brain.trace import TraceModel, draw_episode

MODEL = TraceModel()


@pytest.fixture(scope='module')
def episodes():
    return [draw_episode(MODEL, 1, robot, number) for robot in range(20) for number in range(8)]


def test_turns_and_contexts_are_as_published(episodes) -> None:
    """80 had 1,862 turns; input median 78.1k, P90 131k (the fit draws 7 % more), max 214.7k."""
    assert np.mean([len(e.turns) for e in episodes]) == pytest.approx(23.3, rel=0.06)
    prompts = np.concatenate([np.cumsum([t.appended_tokens for t in e.turns]) for e in episodes])
    prompts = np.minimum(prompts, MODEL.max_context)
    assert np.median(prompts) == pytest.approx(78_100, rel=0.05)
    assert np.percentile(prompts, 90) == pytest.approx(1.07 * 131_000, rel=0.05)
    assert prompts.max() == MODEL.max_context == 214_700


def test_growth_answers_and_gaps_are_as_published(episodes) -> None:
    """Appended median 3,279, P90 10,475; output median 144; 38.6 % no gap, then median 1.0 s."""
    later = [turn for e in episodes for turn in e.turns[1:]]
    appended = np.array([turn.appended_tokens for turn in later])
    assert np.median(appended) == pytest.approx(3279, rel=0.06)
    assert np.percentile(appended, 90) == pytest.approx(10_475, rel=0.06)
    assert np.median([turn.output_tokens for turn in later]) == pytest.approx(144, rel=0.06)
    gaps = np.array([turn.gap_ns for turn in later]) / 1e9
    assert (gaps == 0).mean() == pytest.approx(0.386, abs=0.02)
    assert np.median(gaps) == pytest.approx(1.0, rel=0.1)
    assert np.percentile(gaps, 90) == pytest.approx(3.1, rel=0.1)
    assert gaps.max() == 7.5


def test_episode_is_the_same_whoever_runs_before_it() -> None:
    assert draw_episode(MODEL, 3, 7, 2) == draw_episode(MODEL, 3, 7, 2)
    assert draw_episode(MODEL, 3, 7, 2) != draw_episode(MODEL, 4, 7, 2)
    assert draw_episode(MODEL, 3, 7, 2).turns != draw_episode(MODEL, 3, 7, 3).turns
