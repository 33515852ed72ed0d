# SPDX-License-Identifier: Apache-2.0
"""The settings of every scheduling policy; the compiled and the readable one take the same."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from xinfer_ros.core.request import RETRY_FLOOR_NS
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.rate_table import Counts
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sched.settings_group import (
    ArmoryEdfSettings,
    DynamicBatchSettings,
    LookaheadSettings,
    RobionSettings,
    RoundRobinSettings,
    SerialSettings,
)
from xinfer_ros.setting import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class FifoSettings(PolicySettings):
    """Arrival order; a baseline of XInfer."""

    name: ClassVar[str] = 'fifo'
    algorithm: ClassVar[str] = 'fifo'


def _within(wanted: Counts, calibration: Calibration) -> Counts:
    vit, prefill, action = (min(pair) for pair in zip(wanted, calibration.bound, strict=True))
    return vit, prefill, action


@dataclass(frozen=True, slots=True, kw_only=True)
class EdfSettings(PolicySettings):
    """
    Deadline order within fixed limits; a baseline of XInfer.

    :param lane_limits: units at once; the defaults were fitted to table 10 of XInfer
    """

    name: ClassVar[str] = 'edf'
    algorithm: ClassVar[str] = 'edf'
    lane_limits: Counts = (1, 2, 3)

    def limits(self, calibration: Calibration) -> Counts:
        """Return how many units may run at once on each lane."""
        return _within(self.lane_limits, calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackGateSettings(PolicySettings):
    """
    Deadline order; ordinary work waits while anyone is short of slack; a baseline of XInfer.

    :param threshold_ms: slack below which a request closes the gate
    :param lane_limits: units at once; the defaults were fitted to table 10 of XInfer
    """

    name: ClassVar[str] = 'slack_gate'
    algorithm: ClassVar[str] = 'slack_gate'
    threshold_ms: float = 40.0
    lane_limits: Counts = (2, 6, 5)

    def limits(self, calibration: Calibration) -> Counts:
        """Return how many units may run at once on each lane."""
        return _within(self.lane_limits, calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class XInferSettings(PolicySettings):
    """
    Shared slack with blocking-aware promotion: XInfer / FleetServe, with its five ablations.

    :param interference_model: False: the ablation "no interference model"
    :param strict_gating: ordinary work waits while anyone is protected
    :param arrival_aware: whether the requests foreseen are checked
    :param entry_only: checks before ViT alone
    :param zero_slack_promotion: promote at zero slack, whatever blocks
    :param reserved_ms: ``delta`` of the requests foreseen
    """

    name: ClassVar[str] = 'xinfer'
    algorithm: ClassVar[str] = 'xinfer'
    strict_gating: bool = False
    arrival_aware: bool = True
    entry_only: bool = False
    zero_slack_promotion: bool = False
    reserved_ms: float = 4.0

    @classmethod
    def of(cls, calibration: Calibration) -> 'XInferSettings':
        """Return the defaults for a device."""
        return cls(reserved_ms=calibration.reserved_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForesightSettings(PolicySettings):
    """
    The default: play the near future forward before ordinary work starts.

    Every time is a multiple of what one request takes alone on the device, see ``of``.

    :param urgent_ms: a request starts without a question once it is due within this time
    :param horizon_ms: how far the future is played
    :param sharpness_ms: of the soft step between on time and late
    :param margin_ms: how much earlier than due counts as on time
    :param tardiness_per_ms: price of lateness, in late requests
    :param tolerance: soft count of late requests that an early start may add
    :param tries: early starts that are tried for a stage in one pass
    :param shed_at: soft count of late requests at which putting one off is tried
    :param shed_gain: what that must save
    :param shed_share: share of all requests that may be put off
    :param shed_burst: how many of them at once
    :param put_off_ms: how much later a request is due that was put off, at most
    :param patience_ms: least time after which a robot gives its request up
    :param spare_ms: time in which a robot is not put off again
    :param hopeless_share: share of its budget, or of ``urgent_ms`` if that is less, by which a
        request that is late in any case is due later, again and again
    :param pacing: whether robots with time to spare are asked back at a gap
    :param pacing_rate_per_ms: responses that the fleet may ask for; the robots with time to
        spare share what the others leave
    :param pacing_spread: share of its period by which a robot may be asked later, for the
        quietest time
    :param pacing_step_ms: of that search
    :param pacing_window_ms: arrivals that are closer than this are in each other's way
    :param back_ms: from the end of Action until the robot's next request, at least
    :param reserved_ms: ``delta`` of the requests foreseen
    :param gone_ms: a robot overdue by this is not foreseen any more
    """

    name: ClassVar[str] = 'foresight'
    algorithm: ClassVar[str] = 'foresight'
    batches: ClassVar[bool] = True
    learning_rate: float = 0.02
    urgent_ms: float
    horizon_ms: float
    sharpness_ms: float
    margin_ms: float
    tardiness_per_ms: float = 0.01
    tolerance: float = 0.03
    tries: int = 3
    shed_at: float = 0.5
    shed_gain: float = 0.3
    shed_share: float = 0.005
    shed_burst: float = 20.0
    put_off_ms: float
    patience_ms: float = RETRY_FLOOR_NS / 1e6
    spare_ms: float = 1000.0
    hopeless_share: float = 0.9
    pacing: bool = True
    pacing_rate_per_ms: float
    pacing_spread: float = 0.1
    pacing_step_ms: float = 5.0
    pacing_window_ms: float
    back_ms: float
    reserved_ms: float
    gone_ms: float = 500.0

    @classmethod
    def of(cls, calibration: Calibration) -> 'ForesightSettings':
        """Return the defaults for a device, in units of one request alone on it."""
        alone = calibration.alone_ms
        return cls(
            urgent_ms=3.0 * alone,
            horizon_ms=4.0 * alone,
            sharpness_ms=alone / 7.5,
            margin_ms=alone / 15.0,
            put_off_ms=24.0 * alone,
            pacing_window_ms=3.0 * alone,
            # by batches of one, although the device gives more by larger ones: with their rate a
            # fleet near its limit has no reserve left, and tips over in some rounds
            pacing_rate_per_ms=0.85 * calibration.saturated_per_ms,
            back_ms=calibration.output_ms + calibration.reserved_ms,
            reserved_ms=calibration.reserved_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForesightShedSettings(ForesightSettings):
    """The default, free to put off up to one request in twenty: more attainment, less mercy."""

    name: ClassVar[str] = 'foresight_shed'
    shed_share: float = 0.05
    shed_burst: float = 1000.0
    spare_ms: float = 0.0


POLICIES: dict[str, type[PolicySettings]] = {
    settings.name: settings
    for settings in (
        FifoSettings, EdfSettings, SlackGateSettings, XInferSettings, ForesightSettings,
        ForesightShedSettings, SerialSettings, DynamicBatchSettings, RobionSettings,
        RoundRobinSettings, ArmoryEdfSettings, LookaheadSettings,
    )
}  # fmt: skip


def policy_settings(name: str, calibration: Calibration, **changes: Any) -> PolicySettings:
    """
    Return the settings of a scheduling policy on a device.

    :param changes: settings that differ from the defaults
    :raises ConfigError: if there is no such policy or setting
    """
    if name not in POLICIES:
        raise ConfigError(f'scheduling policy {name} is not known; known: {", ".join(POLICIES)}')
    settings = POLICIES[name].of(calibration)
    for key in changes:
        if key not in (known := sorted(field.name for field in fields(settings))):
            raise ConfigError(
                f'scheduling policy {name} has no setting {key}; {nearest(key, known)}'
            )
    return replace(settings, **changes)
