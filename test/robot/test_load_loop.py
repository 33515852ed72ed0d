# SPDX-License-Identifier: Apache-2.0
"""The loop of a process of emulated robots, on a simulated clock."""

from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.errors import Reason
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.emulated_robot import EmulatedAnswer, EmulatedDraft
from xinfer_ros.robot.load_loop import play

from .test_emulated_fleet import MS, START, plan


def played(latency_ns: int, late_ns: int = 0) -> tuple[EmulatedFleet, int]:
    """Return a fleet that was played through, and how often it told of itself."""
    clock, fleet = SimulatedClock(START), EmulatedFleet(plan(2), START, 30 * MS)
    waiting: list[tuple[int, int, int]] = []
    told: list[int] = []

    def send(place: int, draft: EmulatedDraft) -> None:
        waiting.append((clock.now_ns() + latency_ns, place, draft.request_id))

    def spin(seconds: float) -> None:
        """Wake up at the next answer, or when the time is over, late as told."""
        end_ns = clock.now_ns() + round(seconds * 1e9) + late_ns
        first_ns = min((at_ns for at_ns, _, _ in waiting), default=end_ns)
        clock.advance(min(first_ns, end_ns) - clock.now_ns())
        for answered in [each for each in waiting if each[0] <= clock.now_ns()]:
            waiting.remove(answered)
            _, place, request_id = answered
            answer = EmulatedAnswer(request_id=request_id, is_ours=True, reason=Reason.OK)
            fleet.take(place, clock.now_ns(), answer)

    play(fleet, send, spin, lambda: told.append(fleet.num_sent), clock)
    return fleet, len(told)


def test_everything_due_is_sent_and_every_answer_taken() -> None:
    fleet, told = played(20 * MS)
    log = fleet.log()
    assert len(log) == fleet.answered == 2 * 20
    assert (log.received_ns - log.sent_ns == 20 * MS).all()
    assert (log.sent_ns == log.due_ns).all()
    assert told == 3  # in two seconds


def test_loop_that_wakes_late_tells_its_lag() -> None:
    log = played(20 * MS, late_ns=4 * MS)[0].log()
    assert (log.sent_ns - log.due_ns).max() == 4 * MS
    assert log.lag_ns.max() == 4 * MS
