# SPDX-License-Identifier: Apache-2.0
"""Episodes in the gateway without any I/O: places, leases, turns, dead servers."""

from collections.abc import Callable, Sequence

import pytest

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.book import Record
from xinfer_ros.brain.controller import Controller, Gauges, Standing, TurnUsage
from xinfer_ros.brain.controllers.static import Static
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.choice import make_controller
from xinfer_ros.brain.gateway.episode import (
    Ending,
    Episode,
    EpisodeRequest,
    Outcome,
    Phase,
)
from xinfer_ros.brain.gateway.fingerprint import Fingerprint
from xinfer_ros.brain.gateway.view import phase_of, view_of
from xinfer_ros.config import BrainConfig
from xinfer_ros.errors import Reason, Rejected

S = 1_000_000_000
LEASE = 10 * S
PROMPT = Fingerprint.of({'prompt': 'go'})
USAGE = TurnUsage(prompt_tokens=1000, cached_tokens=800, output_tokens=20)


class Parker(Static):
    """Parks the youngest when it is told to."""

    excess = False

    def overshoots(self, staying: Sequence[Record], now_ns: int) -> bool:
        """Return whether it was told to, once."""
        excess, self.excess = self.excess, False
        return excess


def _static(number: int) -> Controller:
    return EpisodeAdmission(Static(number), None)


def _admission(
    *controllers: Controller, most: int = 100, changed: Callable[[Episode], None] = lambda _: None
) -> Admission:
    return Admission({f's{i}': c for i, c in enumerate(controllers)}, most, changed)


def _open(admission: Admission, name: str, now_ns: int = 0) -> Episode:
    request = EpisodeRequest(episode=name, robot=f'robot-{name}', max_wait_ns=60 * S)
    return admission.open(request, LEASE, now_ns)


def test_the_end_of_one_episode_admits_the_next_in_that_very_moment() -> None:
    """BG-02: by event, nobody looks again after a while."""
    told: list[str] = []
    admission = _admission(_static(2), changed=lambda episode: told.append(episode.id))
    first, _, third = (_open(admission, name) for name in 'abc')
    assert third.standing is Standing.QUEUED
    assert view_of(admission, third, 0).position == 1
    told.clear()
    admission.end(first, Outcome.ENDED, S)
    assert third.standing is Standing.ADMITTED
    assert told == ['a', 'c']


def test_a_silent_episode_loses_its_place_and_a_call_under_way_is_a_sign_of_life() -> None:
    admission = _admission(_static(1))
    first, second = _open(admission, 'a'), _open(admission, 'b')
    admission.call_opened(first, 0)
    admission.renew(second, 95 * S)
    admission.expire(99 * S)
    assert first.outcome is None
    admission.call_closed(first, 100 * S)
    assert admission.next_expiry_ns() == 105 * S
    admission.renew(second, 108 * S)
    admission.expire(110 * S - 1)
    assert second.standing is Standing.QUEUED
    admission.expire(110 * S)
    assert first.outcome is Outcome.LEASE_EXPIRED
    assert second.standing is Standing.ADMITTED


def test_an_episode_that_ends_in_a_turn_drains_first() -> None:
    admission = _admission(_static(1))
    first, second = _open(admission, 'a'), _open(admission, 'b')
    admission.call_opened(first, 0)
    admission.turn_started(first, PROMPT, 0)
    admission.end(first, Outcome.ENDED, S)
    assert phase_of(admission, first) is Phase.DRAINING
    assert second.standing is Standing.QUEUED
    with pytest.raises(Rejected, match='is ending'):
        admission.call_opened(first, S)
    admission.turn_ended(first, USAGE, 2 * S)
    assert phase_of(admission, first) is Phase.ENDED
    assert second.standing is Standing.ADMITTED
    assert (first.totals.turns, first.totals.prompt_tokens, first.totals.cached_tokens) == (
        1, 1000, 800,
    )  # fmt: skip


def test_an_episode_is_parked_at_its_turn_boundary_and_the_time_counts() -> None:
    rule = Parker(2)
    admission = _admission(EpisodeAdmission(rule, None))
    _open(admission, 'a')
    young = _open(admission, 'b', 1)
    admission.turn_started(young, PROMPT, S)
    rule.excess, rule.limit = True, 1
    admission.settle(2 * S)
    assert young.standing is Standing.DRAINING
    admission.turn_ended(young, USAGE, 3 * S)
    assert phase_of(admission, young) is Phase.PARKED
    assert 'parked at a turn boundary' in view_of(admission, young, 4 * S).detail
    rule.limit = 2
    admission.settle(8 * S)
    assert young.standing is Standing.ADMITTED
    assert view_of(admission, young, 20 * S).parked_ns == 5 * S


def test_calls_at_once_are_one_turn_for_the_controller() -> None:
    admission = _admission(_static(1))
    episode = _open(admission, 'a')
    admission.turn_started(episode, PROMPT, 0)
    admission.turn_started(episode, PROMPT, S)
    admission.turn_ended(episode, USAGE, 2 * S)
    assert episode.running == 1
    admission.turn_ended(episode, None, 3 * S, Ending.BROKEN)
    assert episode.running == 0
    assert episode.totals.turns == 1


def test_an_episode_stays_with_its_server_and_the_emptiest_gets_the_next() -> None:
    admission = _admission(_static(9), _static(9))
    assert [_open(admission, name).upstream for name in 'abcd'] == ['s0', 's1', 's0', 's1']
    admission.end(admission.get('a'), Outcome.ENDED, 0)
    admission.end(admission.get('c'), Outcome.ENDED, 0)
    assert _open(admission, 'e').upstream == 's0'
    assert _open(admission, 'b').upstream == 's1'


def test_the_episodes_of_a_dead_server_move_to_one_that_lives() -> None:
    admission = _admission(_static(9), _static(1))
    first, second = _open(admission, 'a'), _open(admission, 'b')
    admission.turn_started(first, PROMPT, 0)
    admission.turn_ended(first, USAGE, S)
    admission.upstream_down('s0', 'frozen', 2 * S)
    assert first.upstream == 's1'
    assert phase_of(admission, first) is Phase.PARKED  # was admitted before: never refused
    admission.end(second, Outcome.ENDED, 5 * S)
    assert phase_of(admission, first) is Phase.ADMITTED
    assert first.totals.parked_ns == 3 * S


def test_without_any_server_episodes_hear_brain_unavailable_until_one_is_up() -> None:
    """BG-03."""
    admission = _admission(_static(1))
    first, second = _open(admission, 'a'), _open(admission, 'b')
    admission.upstream_down('s0', 'nothing has come for 8 s', 0)
    for episode in (first, second):
        view = view_of(admission, episode, 0)
        assert view.phase is Phase.BRAIN_UNAVAILABLE
        assert view.detail == 'nothing has come for 8 s'
    admission.upstream_up('s0', S)
    assert phase_of(admission, first) is Phase.ADMITTED
    assert phase_of(admission, second) is Phase.QUEUED


def test_an_id_belongs_to_one_robot() -> None:
    admission = _admission(_static(1), most=2)
    episode = _open(admission, 'a')
    assert _open(admission, 'a', S) is episode
    with pytest.raises(Rejected, match='is of robot robot-a, not of other'):
        admission.open(EpisodeRequest(episode='a', robot='other', max_wait_ns=0), LEASE, S)
    _open(admission, 'b')
    with pytest.raises(Rejected, match='as many as max_episodes allows') as full:
        _open(admission, 'c')
    assert full.value.reason is Reason.NOT_ADMITTED
    with pytest.raises(Rejected) as refusal:
        admission.get('z')
    assert refusal.value.reason is Reason.UNKNOWN_EPISODE


@pytest.mark.parametrize('name', ['', 'a/b', '../x', 'ä', 'a' * 129, '-x', 'a b'])
def test_an_id_must_fit_into_a_url(name: str) -> None:
    with pytest.raises(Rejected, match='allowed: 1 to 128 letters'):
        EpisodeRequest(episode=name, robot='r', max_wait_ns=0)


def test_a_200k_cache_holds_six_episodes_of_30k_whatever_its_gauge_says() -> None:
    """BG-02: idle contexts look free; the end of one admits the seventh in that very moment."""
    config = BrainConfig(cache_tokens=200_000, block_tokens=16)
    admission = _admission(make_controller(config))
    gauges = Gauges(capacity_tokens=200_000, block_tokens=16, usage=0.05, running=0, waiting=0)
    admission.metrics('s0', gauges, 0)
    episodes = [
        admission.open(
            EpisodeRequest(
                episode=f'e{i}', robot=f'r{i}', max_wait_ns=60 * S, context_hint=30_000
            ),
            LEASE,
            i,
        )
        for i in range(7)
    ]
    for number in range(6):
        admission.turn_started(episodes[number], PROMPT, S)
        usage = TurnUsage(prompt_tokens=29_900, cached_tokens=0, output_tokens=100)
        admission.turn_ended(episodes[number], usage, 2 * S)
    admission.metrics('s0', gauges, 3 * S)
    phases = [phase_of(admission, episode) for episode in episodes]
    assert phases == [Phase.ADMITTED] * 6 + [Phase.QUEUED]
    assert view_of(admission, episodes[6], 3 * S).position == 1
    admission.end(episodes[0], Outcome.ENDED, 4 * S)
    assert phase_of(admission, episodes[6]) is Phase.ADMITTED
