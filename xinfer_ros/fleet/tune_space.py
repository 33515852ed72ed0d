# SPDX-License-Identifier: Apache-2.0
"""What a search may change of each scheduling policy, and by how much at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings

Near = Callable[[Any, Calibration], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """
    One setting that is tuned.

    :param near: returns the values to try beside a present one
    """

    name: str
    near: Near

    def neighbours(
        self, settings: PolicySettings, calibration: Calibration
    ) -> list[PolicySettings]:
        """Return settings that differ in this one alone; values out of range are left out."""
        present = getattr(settings, self.name)
        found = []
        for value in self.near(present, calibration):
            try:
                changed = replace(settings, **{self.name: value})
            except ConfigError:
                continue
            if changed != settings:
                found.append(changed)
        return found


def scaled(*factors: float) -> Near:
    """Return multiples of the present value, rounded to three digits."""
    return lambda value, _: [float(f'{factor * value:.3g}') for factor in factors]


def among(*values: Any) -> Near:
    """Return fixed values."""
    return lambda _, __: values


def beside(least: int, most: int) -> Near:
    """Return the whole numbers up to two away."""
    return lambda value, _: [v for v in range(value - 2, value + 3) if least <= v <= most]


def _lane_limits(value: Sequence[int], calibration: Calibration) -> list[tuple[int, ...]]:
    """Return limits of which one lane differs by one."""
    found = []
    for lane, bound in enumerate(calibration.bound):
        for step in (-1, 1):
            limit = min(value[lane], bound) + step
            if 1 <= limit <= bound:
                found.append((*value[:lane], limit, *value[lane + 1 :]))
    return found


def _held(value: int, calibration: Calibration) -> list[int]:
    """Return limits of what is in the stages at once; no limit is 0."""
    most = sum(calibration.bound) * max(len(batch) for batch in calibration.batch_work)
    if value == 0:
        return [most - most // 4, most // 2, max(most // 4, 1)]
    return [0, max(value - 1, 1), min(value + 1, most)]


_WIDE = scaled(0.6, 0.8, 1.25, 1.6)
_BATCH = Knob(name='max_batch', near=beside(1, 8))
_LIMITS = Knob(name='lane_limits', near=_lane_limits)
_HELD = Knob(name='max_held', near=_held)
_FORESIGHT = (
    Knob(name='urgent_ms', near=scaled(0.8, 0.9, 1.1, 1.25)),
    Knob(name='horizon_ms', near=_WIDE),
    Knob(name='sharpness_ms', near=_WIDE),
    Knob(name='margin_ms', near=_WIDE),
    Knob(name='tolerance', near=_WIDE),
    Knob(name='tries', near=among(1, 2, 3, 5)),
    Knob(name='pacing_rate_per_ms', near=scaled(0.9, 0.95, 1.05, 1.1)),
    Knob(name='pacing_spread', near=among(0.05, 0.1, 0.2, 0.3)),
    Knob(name='hopeless_share', near=among(0.6, 0.9, 1.2)),
    _HELD,
)
_KNOBS: dict[str, tuple[Knob, ...]] = {
    'fifo': (_HELD,),
    'edf': (_LIMITS, _HELD),
    'slack_gate': (Knob(name='threshold_ms', near=_WIDE), _LIMITS, _HELD),
    'xinfer': (
        Knob(name='reserved_ms', near=_WIDE),
        Knob(name='learning_rate', near=among(0.0, 0.01, 0.02, 0.05)),
        Knob(name='zero_slack_promotion', near=among(False, True)),
        Knob(name='arrival_aware', near=among(False, True)),
        _HELD,
    ),
    'foresight': _FORESIGHT,
    'foresight_shed': (*_FORESIGHT, Knob(name='shed_share', near=_WIDE)),
    'serial': (),
    'dynamic_batch': (_BATCH, Knob(name='wait_ms', near=scaled(0.0, 0.5, 0.8, 1.25, 2.0))),
    'robion': (
        Knob(name='group', near=beside(1, 16)),
        Knob(name='context_share', near=among(0.0, 0.3, 0.4, 0.5, 0.6, 0.7)),
        Knob(name='publish_at_barrier', near=among(False, True)),
    ),
    'round_robin': (_BATCH,),
    'armory_edf': (_BATCH,),
    'lookahead': (
        _BATCH,
        Knob(name='flat', near=_WIDE),
        Knob(name='fade', near=_WIDE),
        Knob(name='bonus', near=_WIDE),
        Knob(name='memory', near=_WIDE),
        Knob(name='fast_weight', near=among(1.0, 2.0, 5.0)),
    ),
}


def knobs(policy: str) -> tuple[Knob, ...]:
    """Return what may be changed of a scheduling policy; nothing is left for an unknown one."""
    return _KNOBS.get(policy, ())
