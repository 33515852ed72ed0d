# SPDX-License-Identifier: Apache-2.0
"""The compiled scheduling policies decide as the readable ones do, in every bit."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.reference.core import reference_core
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sched.settings_base import PolicySettings

from .random_settings import CASES, random_settings
from .random_states import MS, RandomFleet, random_device

Make = Callable[[Calibration, PolicySettings], SchedulerCore]
EVENTS = 200  # of one fleet on one device
STATES = 8_400  # of each case
ISSUED = {Verdict.ISSUED, Verdict.ISSUED_PROTECTED}
VERDICTS = {
    'fifo': {Verdict.ISSUED},
    'edf': {Verdict.ISSUED},
    'slack_gate': ISSUED | {Verdict.DEFERRED_GATE},
    'xinfer': ISSUED | {Verdict.DEFERRED_CURRENT, Verdict.DEFERRED_FORECAST},
    'serial': {Verdict.ISSUED},
    'dynamic_batch': {Verdict.ISSUED, Verdict.DEFERRED_BATCH},
    'robion': {Verdict.ISSUED},
    'round_robin': {Verdict.ISSUED},
    'armory_edf': {Verdict.ISSUED},
    'lookahead': {Verdict.ISSUED},
    'foresight': ISSUED | {Verdict.DEFERRED_ROLLOUT, Verdict.PUT_OFF},
    'foresight_shed': ISSUED | {Verdict.DEFERRED_ROLLOUT, Verdict.PUT_OFF},
    # alone, nobody costs anybody anything
    'xinfer without interference': ISSUED | {Verdict.DEFERRED_FORECAST},
    'xinfer not arrival-aware': ISSUED | {Verdict.DEFERRED_CURRENT},
    'xinfer with strict gating': ISSUED | {Verdict.DEFERRED_GATE},
}


@dataclass
class Compared:
    """What a comparison went through."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    batches: int = 0


def compare(case: str, seed: int, states: int) -> Compared:
    """Compare both cores in so many states."""
    random, compared = Random(f'{case} {seed}'), Compared()
    for _ in range(-(-states // EVENTS)):
        device = random_device(random)
        settings = random_settings(random, device, case)
        cores = [native_core(device, settings), reference_core(device, settings)]
        fleet = RandomFleet(random, device, cores)
        fleet.run(EVENTS)
        assert fleet.states == EVENTS
        compared.verdicts += fleet.verdicts
        compared.batches += fleet.batches
    return compared


def test_every_scheduling_policy_is_compared() -> None:
    assert {policy for policy, _ in CASES.values()} == set(POLICIES)


@pytest.mark.parametrize('case', CASES)
def test_compiled_and_readable_policy_decide_alike(case: str) -> None:
    compare(case, 0, 600)


@pytest.mark.parametrize('case', ['xinfer', 'foresight', 'foresight_shed'])
def test_compiled_and_readable_policy_decide_alike_for_a_crowd(case: str) -> None:
    """More robots than a rollout takes in."""
    random = Random(f'{case} 0')
    device = random_device(random)
    settings = random_settings(random, device, case)
    cores = [native_core(device, settings), reference_core(device, settings)]
    RandomFleet(random, device, cores, robots=90).run(450)


@pytest.mark.slow
@pytest.mark.parametrize('case', CASES)
def test_compiled_and_readable_policy_decide_alike_in_many_states(case: str) -> None:
    """One hundred thousand states over all cases, and every verdict that a policy knows."""
    assert len(CASES) * STATES >= 100_000
    compared = compare(case, 1, STATES)
    assert set(compared.verdicts) == VERDICTS.get(case, VERDICTS[case.split()[0]])
    assert compared.batches or not case.startswith('foresight')


@pytest.mark.parametrize('make', [native_core, reference_core])
def test_decisions_are_timed_from_the_first_event_whatever_arrived_before(make: Make) -> None:
    device = random_device(Random(0))
    core = make(device, policy_settings('fifo', device))
    core.keep_log(True)
    core.submit(
        now_ns=10 * MS,
        key=1,
        robot=0,
        arrival_ns=2 * MS,
        budget_ns=90 * MS,
        reserved_ns=4 * MS,
        period_ns=180 * MS,
    )
    core.dispatch(13 * MS)
    assert [decision[0] for decision in core.take_decisions()] == [3.0]
    assert list(core.take_decisions()) == []


@pytest.mark.parametrize('make', [native_core, reference_core])
def test_end_of_a_unit_that_does_not_run_is_an_error(make: Make) -> None:
    device = random_device(Random(0))
    core = make(device, policy_settings('fifo', device))
    with pytest.raises(IndexError, match='no unit 7 is running'):
        core.complete(0, 7)
    with pytest.raises(IndexError, match='no unit 7 is running'):
        core.withdraw(0, 7)
