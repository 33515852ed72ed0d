# SPDX-License-Identifier: Apache-2.0
"""How many rows a robot promises itself: the commitment, from the response times of late."""

from collections import deque

from xinfer_ros.config import ExecutorConfig

WINDOW = 20
_DUST_NS = 1_000  # a spacing is rounded to whole nanoseconds; a thousand rows add up to this


def rows_within(duration_ns: int, keyframe_spacing_ns: int) -> int:
    """
    Return the rows that a robot executes in a time, rounded up [steps].

    A microsecond too much is no row: 100 ms at 30 Hz are 3 rows, although three spacings of
    33 333 333 ns fall short of them.

    :param duration_ns: not negative [ns]
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    """
    return -(-max(duration_ns - _DUST_NS, 0) // keyframe_spacing_ns)


def misfit(config: ExecutorConfig, horizon: int) -> str:
    """
    Return why chunks are too short for the settings, nothing if they are not.

    :param horizon: rows of a chunk, ``H`` [steps]
    """
    period_steps = round(config.minimum_period_s / config.keyframe_spacing_s)
    least_steps = config.commitment_steps
    if config.execution_mode != 'rtc':
        least_steps = 0  # nothing is promised
    elif config.commitment == 'measured':
        least_steps = min(config.min_commitment_steps, config.max_commitment_steps)
    if least_steps <= period_steps <= horizon - least_steps:
        return ''
    return (
        f'commitment d={least_steps}, period s={period_steps}, horizon H={horizon}: '
        'd <= s <= H - d does not hold; change minimum_period_s'
    )


class CommitmentEstimator:
    """
    The commitment ``d`` that covers the longest of the last response times.

    The first response of a session is left out, since it holds what a server does only once; any
    other one counts until ``WINDOW`` later ones have come. Times are integers, so that equal
    responses always give an equal ``d``. Not thread-safe: its owner locks.

    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param start_steps: ``d`` until a response has been measured [steps]
    :param margin_steps: added to what was measured [steps]
    :param min_steps: the least ``d`` [steps]
    :param max_steps: the largest ``d``, stronger than the least [steps]
    """

    def __init__(
        self,
        keyframe_spacing_ns: int,
        start_steps: int,
        margin_steps: int,
        min_steps: int = 1,
        max_steps: int = 1000,
    ) -> None:
        self._keyframe_spacing_ns = keyframe_spacing_ns
        self._start_steps, self._margin_steps = start_steps, margin_steps
        self._min_steps, self._max_steps = min_steps, max_steps
        self._responses_ns: deque[int] = deque(maxlen=WINDOW)
        self._is_cold = True

    def begin_session(self) -> None:
        """Leave the next response out; what was measured before counts on."""
        self._is_cold = True

    def add(self, response_ns: int) -> None:
        """Take in the time from a request to its chunk [ns]."""
        if self._is_cold:
            self._is_cold = False
        else:
            self._responses_ns.append(response_ns)

    def steps(self, budget_ns: int, max_steps: int | None) -> int:
        """
        Return the commitment of the next request [steps].

        :param budget_ns: its response budget: an answer that takes longer has failed anyway [ns]
        :param max_steps: the most that the server honours, None if it is not known [steps]
        """
        wanted = self._start_steps
        if self._responses_ns:
            longest = rows_within(max(self._responses_ns), self._keyframe_spacing_ns)
            wanted = longest + self._margin_steps
        limit = min(rows_within(budget_ns, self._keyframe_spacing_ns), self._max_steps)
        if max_steps is not None:
            limit = min(limit, max_steps)
        return min(max(wanted, self._min_steps), limit)
