# SPDX-License-Identifier: Apache-2.0
"""
How far running work has come and how long a request still needs: equations 3 and 8 to 10.

Source: "Scaling VLA Serving Under Robotic Execution Constraints" (2026), section 4.3. Times in ms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.calibration import Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """
    What a supplied load ``n`` means for a request in each stage ``s``.

    :param stage_ms: ``q_s(n)``, of a unit that is not one of ``n``
    :param rate: ``rho_s(n - e_s)``, of a unit that is one of ``n``
    :param inverse: ``1 / rho_s(n - e_s)``
    :param rest_ms: ``h_out + sum of q_k(n) over k > s``
    """

    stage_ms: tuple[float, float, float]
    rate: tuple[float, float, float]
    inverse: tuple[float, float, float]
    rest_ms: tuple[float, float, float]

    def remaining_ms(self, stage: int, current_ms: float) -> float:
        """
        Return ``R_j(n) = h_out + r_{j,s}(n) + sum of q_k(n) over k > s``: no queueing to come.

        :param current_ms: ``r_{j,s}(n)``: ``q_s(n)`` while the request waits, the residual of its
            unit while it runs
        Source: equation 10.
        """
        return current_ms + self.rest_ms[stage]


@dataclass(slots=True, kw_only=True)
class Progress:
    """
    How far one running unit has come by the table.

    :param stage: ``s``
    :param begin_ms: ``beta``, the end of its launch overhead
    :param work_ms: ``W_s``, of the whole unit
    :param done_ms: ``w``, the work that is done
    """

    stage: int
    begin_ms: float
    work_ms: float
    done_ms: float = 0.0

    @property
    def left_ms(self) -> float:
        """Return ``[W_s - w]+``."""
        return max(self.work_ms - self.done_ms, 0.0)

    def advance(self, from_ms: float, to_ms: float, rate: float) -> None:
        """
        Take in a span of time with constant counts ``n_r``.

        ``w`` is the integral of ``rho_s(n_r(u) - e_s)`` from ``beta`` on: nothing is done before.

        :param rate: ``rho_s(n_r - e_s)``
        Source: equation 9, first part.
        """
        begin_ms = max(from_ms, self.begin_ms)
        if to_ms > begin_ms:
            self.done_ms += (to_ms - begin_ms) * rate

    def residual_ms(self, now_ms: float, load: Load) -> float:
        """
        Return ``[beta - t]+ + [W_s - w]+ / rho_s(n - e_s)``.

        Source: equation 9, second part.
        """
        return max(self.begin_ms - now_ms, 0.0) + self.left_ms * load.inverse[self.stage]


def slack_ms(deadline_ms: float, now_ms: float, remaining_ms: float) -> float:
    """
    Return ``sigma_j(n) = l_j - t - R_j(n)``.

    Source: equation 3.
    """
    return deadline_ms - now_ms - remaining_ms


class Predictor:
    """
    The calibration as the scheduler uses it, with its online correction of stage times.

    :param interference: whether loads are looked up; if not, all work goes as if alone
    """

    def __init__(self, calibration: Calibration, *, interference: bool = True) -> None:
        self._calibration = calibration
        self._interference = interference
        self.correction = [1.0, 1.0, 1.0]  # true W_s over that of the calibration
        self._loads: dict[tuple[int, ...], Load] = {}  # looked up since the last correction

    def table_work_ms(self, stage: int, count: int) -> float:
        """Return ``W_s`` of a batch as the calibration says."""
        batch = self._calibration.batch_work[stage]
        return self._calibration.work_ms[stage] * batch[count - 1]

    def work_ms(self, stage: int, count: int) -> float:
        """Return ``W_s`` of a batch, corrected."""
        return self.table_work_ms(stage, count) * self.correction[stage]

    def rate(self, stage: int, counts: Sequence[int]) -> float:
        """Return ``rho_s(min([n - e_s]+, c))`` of a unit that is one of ``n``."""
        if not self._interference:
            return 1.0
        return self._calibration.table.rate_without(stage, counts)

    def stage_ms(self, stage: int, counts: Sequence[int]) -> float:
        """
        Return ``q_s(n) = h_s + W_s / rho_s(min(n, c))`` of a unit that is not one of ``n``.

        Source: equation 8.
        """
        rate = self._calibration.table.rate(stage, counts) if self._interference else 1.0
        return self._calibration.overhead_ms[stage] + self.work_ms(stage, 1) * (1.0 / rate)

    def load(self, counts: Sequence[int]) -> Load:
        """Return what ``n`` means for each stage."""
        key = tuple(counts)
        if key not in self._loads:
            self._loads[key] = self._look_up(key)
        return self._loads[key]

    def _look_up(self, counts: Sequence[int]) -> Load:
        vit, prefill, action = (self.stage_ms(stage, counts) for stage in Stage)
        vit_rate, prefill_rate, action_rate = (self.rate(stage, counts) for stage in Stage)
        after_action = self._calibration.output_ms
        after_prefill = action + after_action
        return Load(
            stage_ms=(vit, prefill, action),
            rate=(vit_rate, prefill_rate, action_rate),
            inverse=(1.0 / vit_rate, 1.0 / prefill_rate, 1.0 / action_rate),
            rest_ms=(prefill + after_prefill, after_prefill, after_action),
        )

    def learn(self, stage: int, count: int, done_ms: float, learning_rate: float) -> None:
        """
        Let ``W_s`` drift to the work that a finished unit has turned out to hold.

        :param done_ms: its work by the rates of the table
        """
        if learning_rate <= 0.0 or done_ms <= 0.0:
            return
        seen = min(max(done_ms / self.table_work_ms(stage, count), 0.1), 10.0)
        self.correction[stage] += learning_rate * (seen - self.correction[stage])
        self._loads.clear()

    def slowdown(self) -> float:
        """Return how much slower the device has turned out to be than its calibration."""
        table_ms = seen_ms = 0.0
        for stage in Stage:
            table_ms += self._calibration.work_ms[stage]
            seen_ms += self._calibration.work_ms[stage] * self.correction[stage]
        return seen_ms / table_ms
