# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a robot or the server, and what would help, in one line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.core.metrics import percentile_ns
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason
from xinfer_ros.observe.robot_window import Given, RobotFigures
from xinfer_ros.observe.totals import rest_ns

FEWEST_TICKS = 30  # of a window, before a share of them says anything
FEWEST_ANSWERS = 5
SLOW = 1.5  # of the device, against its calibration
ORDINARY = (Reason.SUPERSEDED, Reason.SHUTDOWN)  # nobody has to mend them


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is wrong; see config.ServerConfig."""

    late_warn_share: float
    late_error_share: float
    starved_warn_share: float
    starved_error_share: float
    stale_ns: int
    network_warn_ns: int

    @classmethod
    def from_config(cls, config: ServerConfig) -> 'Thresholds':
        """Return the thresholds of the server's settings."""
        return cls(
            late_warn_share=config.late_warn_share,
            late_error_share=config.late_error_share,
            starved_warn_share=config.starved_warn_share,
            starved_error_share=config.starved_error_share,
            stale_ns=round(config.stale_s * 1e9),
            network_warn_ns=round(config.network_warn_s * 1e9),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotFacts:
    """
    What a robot is judged by.

    :param figures: its window
    :param phase: of the server
    :param silent_ns: time since its last sign of life [ns]
    :param mismatch: why its observations can't reach the server, empty if they can
    """

    figures: RobotFigures
    phase: ServerPhase
    silent_ns: int
    mismatch: str = ''


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """
    What the server is judged by.

    :param ended_ns: since an engine ended by itself, None if none has in the window [ns]
    :param slow: work that units hold over the calibration's, of the stage where that is most
    :param refusals: answers of the window without rows, by reason
    :param served: robots that got rows in the window
    :param robots: registered ones
    """

    phase: ServerPhase
    ended_ns: int | None
    slow: float
    refusals: Counter[Reason]
    served: int
    robots: int


def judge_robot(facts: RobotFacts, limits: Thresholds) -> Verdict:
    """Return the first of the troubles that there are, an ERROR before any WARN."""
    found = [verdict for check in _ROBOT_CHECKS if (verdict := check(facts, limits)) is not None]
    if found:
        return max(found, key=lambda verdict: verdict.level)  # the first of the worst
    if not (facts.figures.served or facts.figures.refusals or facts.figures.in_flight):
        return Verdict(level=Level.OK, text='registered; it asks for nothing at present')
    return Verdict(level=Level.OK, text='on time')


def judge_server(facts: ServerFacts) -> Verdict:
    """Return how the server is."""
    if facts.phase is ServerPhase.ERROR:
        return _error('a unit hangs: robots are answered HUNG until it ends; see the log')
    if facts.phase is ServerPhase.STARTING:
        return _warn('STARTING: the engine loads its model, and robots are not served yet')
    if facts.phase is ServerPhase.STOPPED:
        return _warn('STOPPED: nobody is served; activate the node')
    if facts.ended_ns is not None:
        return _warn(
            f'the engine ended {facts.ended_ns / 1e9:.1f} s ago, and a new one serves; the '
            "server's log says why"
        )
    if facts.refusals[Reason.REJECTED_NO_SLOT]:
        return _warn('all slots are in use: raise max_robots')
    if facts.refusals[Reason.REJECTED_CAPACITY]:
        return _warn(
            f'the device is full: {facts.served} of {facts.robots} robots are served; take robots '
            'off, let them ask less often (minimum_period_s), or add a server'
        )
    if facts.slow >= SLOW:
        return _warn(
            f'the device is {facts.slow:.1f} times as slow as its calibration: what else runs on '
            'it? `xinfer calibrate` measures it anew'
        )
    return Verdict(level=Level.OK, text=facts.phase.name)


def _warn(text: str) -> Verdict:
    return Verdict(level=Level.WARN, text=text)


def _error(text: str) -> Verdict:
    return Verdict(level=Level.ERROR, text=text)


def _graded(share: float, error_share: float, text: str) -> Verdict:
    return _error(text) if share >= error_share else _warn(text)


def _mismatch(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    return _error(facts.mismatch) if facts.mismatch else None


def _stale(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    if facts.silent_ns < limits.stale_ns:
        return None
    return _error(
        f'stale: silent for {facts.silent_ns / 1e9:.1f} s; does its executor run, and does the '
        'network reach it?'
    )


def _engine(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    if facts.phase is ServerPhase.ERROR:
        return _error('the engine hangs; it is restarted if the unit does not end')
    if facts.phase is ServerPhase.STARTING:
        return _error('the engine is down: a new one starts, and the robot goes on by itself')
    return _warn('the server is inactive') if facts.phase is ServerPhase.STOPPED else None


def _refused(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    """Tell the reason that it is refused for most, if it gets nothing else."""
    refusals = facts.figures.refusals.copy()
    for reason in ORDINARY:
        del refusals[reason]
    if not refusals:
        return None
    reason, count = refusals.most_common(1)[0]
    help_ = {
        Reason.REJECTED_CAPACITY: 'the device is full: take robots off, let them ask less often '
        '(minimum_period_s), or add a server',
        Reason.REJECTED_NO_SLOT: 'all slots are in use: raise max_robots',
        Reason.EXPIRED: 'no lane was free for it in time: take robots or load off the server',
    }.get(reason, 'the log of its executor says what to mend')
    text = f'{reason.name}, {count} times: {help_}'
    return _error(text) if not facts.figures.served else _warn(text)


def _starving(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    figures = facts.figures
    share = figures.starved_share
    warn_share, error_share = limits.starved_warn_share, limits.starved_error_share
    if figures.ticks < FEWEST_TICKS or not share or share < min(warn_share, error_share):
        return None
    why = (
        _cause_of_its_own(figures)
        if _is_in_time(figures, limits)
        else _cause(figures, network=True)
    )
    text = f'starving: {100 * share:.0f} % of its control ticks had no action; {why}'
    return _graded(share, error_share, text)


def _late(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    served = facts.figures.served
    if len(served) < FEWEST_ANSWERS:
        return None
    share = sum(not given.on_time for given in served) / len(served)
    warn_share, error_share = limits.late_warn_share, limits.late_error_share
    if not share or share < min(warn_share, error_share):
        return None
    text = f'late: {100 * share:.0f} % of its answers; {_cause(facts.figures, network=False)}'
    return _graded(share, error_share, text)


def _network(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    median_ns = percentile_ns(facts.figures.network_ns, 50)
    if not median_ns or median_ns < limits.network_warn_ns:
        return None
    return _warn(
        f'network slow: {median_ns / 1e6:.0f} ms of a round trip; send JPEG instead of raw '
        'pictures, or mend the link'
    )


def _duplicate(facts: RobotFacts, limits: Thresholds) -> Verdict | None:
    if not facts.figures.duplicates:
        return None
    times = facts.figures.duplicates
    return _warn(
        f'DUPLICATE_ID: another robot came with its id {times} times and was refused; give each '
        'robot an id of its own'
    )


def _cause(figures: RobotFigures, *, network: bool) -> str:
    """
    Return where the time of its answers goes for the most part, and what would help.

    Of those that were late, if any was: the others say nothing of why.

    :param network: whether the time on the network matters, which makes no answer late here
    """
    given = [each for each in figures.served if not each.on_time] or figures.served
    parts = {
        'waiting for a lane': _mean_ms([each.times.queue_ns for each in given]),
        'decoding': _mean_ms([each.times.decode_ns for each in given]),
        'computing': _mean_ms([_compute_ns(each) for each in given]),
        'between the processes': _mean_ms([rest_ns(each.times) for each in given]),
        'the network': _mean_ms(figures.network_ns) if network else 0.0,
    }
    part, ms = max(parts.items(), key=lambda item: item[1])
    budget_ms = figures.asked.budget_ns / 1e6
    return f'mostly {part}, {ms:.0f} ms of a budget of {budget_ms:.0f} ms: {_HELP[part]}'


def _is_in_time(figures: RobotFigures, limits: Thresholds) -> bool:
    """Return whether a robot gets its answers in time, the network's time included."""
    served = figures.served
    late = sum(not given.on_time for given in served)
    trip_ms = _mean_ms([given.times.server_ns for given in served]) + _mean_ms(figures.network_ns)
    is_late = late >= max(limits.late_warn_share * len(served), 1)
    allowed_ns = min(figures.asked.budget_ns, figures.asked.minimum_period_ns)
    return bool(served) and not is_late and trip_ms < allowed_ns / 1e6


def _cause_of_its_own(figures: RobotFigures) -> str:
    """Return why a robot may starve that gets its answers in time."""
    return (
        f'its answers are in time, but it asks every {figures.asked.minimum_period_ns / 1e6:.0f} '
        'ms at most: let it ask sooner than its rows run out (minimum_period_s), or look for '
        'stalls of its executor'
    )


def _mean_ms(times_ns: Sequence[int]) -> float:
    return sum(times_ns) / len(times_ns) / 1e6 if times_ns else 0.0


def _compute_ns(given: Given) -> int:
    return given.times.vit_ns + given.times.prefill_ns + given.times.action_ns


_HELP = {
    'waiting for a lane': 'too many robots for the device, or budgets too short for it',
    'decoding': 'raise decode_threads, or send smaller pictures',
    'computing': 'the model is slow for this budget; allow more, or a faster device',
    'between the processes': 'the host of the server is too busy',
    'the network': 'send JPEG instead of raw pictures, or mend the link',
}
_ROBOT_CHECKS = (
    _mismatch, _stale, _engine, _refused, _starving, _late, _network, _duplicate,
)  # fmt: skip
