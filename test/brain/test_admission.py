# SPDX-License-Identifier: Apache-2.0
"""Who is next, who is parked, and what everybody is told."""

import pytest

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Action, Gauges, Standing, TurnUsage
from xinfer_ros.brain.controllers.open import Open
from xinfer_ros.brain.controllers.static import Static
from xinfer_ros.brain.guards import PreemptionGuard
from xinfer_ros.errors import ConfigError

from .fleet_of_turns import NS, ByHand


def by_hand(number: int) -> ByHand:
    return ByHand(EpisodeAdmission(Static(number), PreemptionGuard()))


def standing(fleet: ByHand, episode: str) -> Standing:
    place = fleet.controller.place(episode, fleet.now_ns)
    assert place is not None
    return place.standing


def test_place_that_is_left_goes_to_the_next_at_once() -> None:
    fleet = by_hand(2)
    assert fleet.arrive('a') == [('a', Action.ADMIT)]
    assert fleet.arrive('b') == [('b', Action.ADMIT)]
    assert fleet.arrive('c') == []
    assert fleet.ended('a') == [('c', Action.ADMIT)]


def test_those_that_wait_know_their_position() -> None:
    fleet = by_hand(1)
    for name in 'abc':
        fleet.arrive(name)
    places = [fleet.controller.place(name, 0) for name in 'abc']
    assert [place.position for place in places if place] == [None, 1, 2]
    assert fleet.controller.place('nobody', 0) is None


def test_wait_is_estimated_by_the_time_between_admissions() -> None:
    fleet = by_hand(1)
    for name in 'abcd':
        fleet.arrive(name)
    fleet.now_ns = 10 * NS
    fleet.ended('a')
    fleet.now_ns = 20 * NS
    place = fleet.controller.place('d', fleet.now_ns)
    assert place is not None
    assert place.estimate_ns == 2 * 10 * NS


def test_quiet_hour_is_no_wait() -> None:
    """Places that nobody waits for tell nothing: the first in line was told of half an hour."""
    fleet = by_hand(2)
    for name in 'ab':
        fleet.arrive(name)
    fleet.now_ns = 3600 * NS
    for name in 'cd':
        fleet.arrive(name)
    place = fleet.controller.place('c', fleet.now_ns)
    assert place is not None
    assert (place.position, place.estimate_ns) == (1, None)
    fleet.now_ns += 30 * NS
    assert fleet.ended('a') == [('c', Action.ADMIT)]
    place = fleet.controller.place('d', fleet.now_ns)
    assert place is not None
    assert (place.position, place.estimate_ns) == (1, 30 * NS)


def test_wait_grows_while_nothing_moves() -> None:
    fleet = by_hand(1)
    for name in 'abc':
        fleet.arrive(name)
    fleet.now_ns = 10 * NS
    fleet.ended('a')
    place = fleet.controller.place('c', 70 * NS)
    assert place is not None
    assert place.estimate_ns == 35 * NS


def test_higher_priority_is_admitted_first() -> None:
    fleet = by_hand(1)
    fleet.arrive('a')
    fleet.arrive('b')
    fleet.arrive('c', priority=1)
    assert fleet.ended('a') == [('c', Action.ADMIT)]


def test_robot_that_was_served_least_is_next() -> None:
    fleet = by_hand(1)
    fleet.arrive('a0', robot='a')
    for _ in range(5):
        fleet.turn('a0', 100)
    fleet.arrive('a1', robot='a')
    fleet.arrive('b0', robot='b')
    fleet.arrive('c0', robot='c')
    fleet.turn('a0', 100)
    assert fleet.ended('a0') == [('b0', Action.ADMIT)]
    fleet.turn('b0', 100)
    fleet.arrive('b1', robot='b')
    assert fleet.ended('b0') == [('c0', Action.ADMIT)]


def test_robots_that_keep_coming_do_not_shut_out_one_that_was_served() -> None:
    fleet = by_hand(1)
    fleet.arrive('a0', robot='a')
    fleet.turn('a0', 100)
    fleet.arrive('a1', robot='a')
    served = []
    current = 'a0'
    for number in range(4):
        fleet.arrive(f'n{number}')
        ((current, _),) = fleet.ended(current)
        served.append(current)
        fleet.turn(current, 100)
    assert 'a1' in served


def test_running_turn_of_a_parked_episode_ends_first() -> None:
    """BG-05: three preemptions within a minute lower the admitted number by one for 30 s."""
    fleet = by_hand(3)
    for name in 'abc':
        fleet.arrive(name)
    fleet.start('c')
    fleet.controller.metrics(Gauges(preemptions=10), fleet.now_ns)
    fleet.now_ns += NS
    fleet.controller.metrics(Gauges(preemptions=12), fleet.now_ns)
    assert fleet.decide() == []
    fleet.now_ns += NS
    fleet.controller.metrics(Gauges(preemptions=13), fleet.now_ns)
    assert fleet.decide() == [('c', Action.PARK)]
    assert standing(fleet, 'c') is Standing.DRAINING
    usage = TurnUsage(prompt_tokens=10, cached_tokens=0, output_tokens=1)
    assert fleet.end('c', usage) == []
    assert standing(fleet, 'c') is Standing.PARKED
    assert fleet.controller.state(fleet.now_ns).limit == 2
    fleet.now_ns += 28 * NS
    assert fleet.decide() == []
    fleet.now_ns += 2 * NS
    assert fleet.decide() == [('c', Action.RESUME)]
    assert 'preempt' in next(d.reason for d in fleet.decisions if d.action is Action.PARK)


def test_preemptions_far_apart_change_nothing() -> None:
    fleet = by_hand(2)
    fleet.arrive('a')
    fleet.arrive('b')
    for count in range(5):
        fleet.controller.metrics(Gauges(preemptions=count), count * 31 * NS)
        fleet.now_ns = count * 31 * NS
        assert fleet.decide() == []


def test_parked_episode_comes_back_before_a_new_one() -> None:
    fleet = by_hand(2)
    for name in 'ab':
        fleet.arrive(name)
    for count in (0, 3):
        fleet.controller.metrics(Gauges(preemptions=count), fleet.now_ns)
    fleet.decide()
    fleet.arrive('c')
    assert standing(fleet, 'b') is Standing.PARKED
    assert fleet.ended('a') == [('b', Action.RESUME)]


def test_few_hits_over_twenty_turns_warn() -> None:
    """BG-05: a hit ratio below 50 % over 20 turns warns, one above does not."""
    fleet = ByHand(EpisodeAdmission(Open(), None))
    fleet.arrive('a')
    fleet.turn('a', 1000, 0)
    for _ in range(19):
        fleet.turn('a', 1000, 490)
    assert fleet.controller.state(0).warnings == ()
    fleet.turn('a', 1000, 490)
    (warning,) = fleet.controller.state(0).warnings
    assert warning.startswith('only 49 % of the prompt tokens of the last 20 turns were cached')
    assert 'fixed text first' in warning
    for _ in range(20):
        fleet.turn('a', 1000, 510)
    assert fleet.controller.state(0).warnings == ()


def test_first_turns_of_a_cold_fleet_do_not_warn() -> None:
    """Nothing can be cached of them; the turns that follow are what counts."""
    fleet = ByHand(EpisodeAdmission(Open(), None))
    for number in range(30):
        fleet.arrive(f'e{number}')
        fleet.turn(f'e{number}', 1000, 0)
    state = fleet.controller.state(0)
    assert (state.warnings, state.hit_ratio) == ((), None)


def test_server_that_tells_no_cached_tokens_is_not_warned_of() -> None:
    fleet = ByHand(EpisodeAdmission(Open(), None))
    fleet.arrive('a')
    for _ in range(30):
        fleet.turn('a', 1000, None)
    state = fleet.controller.state(0)
    assert (state.warnings, state.hit_ratio) == ((), None)


def test_second_episode_of_an_id_is_refused() -> None:
    fleet = by_hand(1)
    fleet.arrive('a')
    with pytest.raises(ConfigError, match="'a' is here already"):
        fleet.arrive('a')


def test_call_of_an_unknown_episode_is_refused_and_its_end_ignored() -> None:
    fleet = by_hand(1)
    with pytest.raises(ConfigError, match='must arrive first'):
        fleet.start('a')
    fleet.controller.turn_ended('a', None, 0)
    assert fleet.ended('a') == []


def test_episode_that_gives_up_waiting_leaves_the_line() -> None:
    fleet = by_hand(1)
    for name in 'abc':
        fleet.arrive(name)
    fleet.ended('b')
    assert fleet.ended('a') == [('c', Action.ADMIT)]


def test_positions_follow_every_change_of_the_line() -> None:
    """They are counted once between two changes, however many ask."""
    fleet = ByHand(EpisodeAdmission(Static(1), None))
    for name, robot in (('a', 'r1'), ('b', 'r1'), ('c', 'r2'), ('d', 'r3')):
        fleet.arrive(name, robot)

    def line() -> list[int | None]:
        places = [fleet.controller.place(name, fleet.now_ns) for name in 'bcd']
        return [place.position if place else None for place in places]

    assert line() == [1, 2, 3]
    fleet.turn('a', 100)
    assert line() == [3, 1, 2]  # its robot has had a turn
    fleet.arrive('e', 'r4', priority=9)
    assert line() == [4, 2, 3]
    fleet.ended('c')
    assert line() == [3, None, 2]
    fleet.ended('a')
    assert line() == [2, None, 1]
