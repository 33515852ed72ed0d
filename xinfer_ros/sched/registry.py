# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies by name, compiled or readable."""

from typing import Any, Literal, get_args

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.barrier import RoundBarrier
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.native import native_core
from xinfer_ros.sched.scheduler import Scheduler
from xinfer_ros.sched.settings import policy_settings
from xinfer_ros.sched.settings_base import PolicySettings

Implementation = Literal['native', 'reference']


def make_core(
    policy: str,
    calibration: Calibration,
    *,
    implementation: Implementation = 'native',
    **changes: Any,
) -> SchedulerCore:
    """
    Return a new scheduling policy with an empty state.

    :param policy: one of ``settings.POLICIES``
    :param calibration: the device
    :param implementation: the compiled one, or the one to read
    :param changes: settings that differ from the defaults
    :raises ConfigError: if there is no such policy, setting or implementation
    """
    return _core(policy_settings(policy, calibration, **changes), calibration, implementation)


def make_scheduler(
    policy: str,
    calibration: Calibration,
    *,
    implementation: Implementation = 'native',
    round_barrier: bool = False,
    **changes: Any,
) -> Scheduler:
    """
    Return a new scheduler with an empty state.

    :param round_barrier: whether requests are served in common rounds (an ablation)
    :raises ConfigError: as ``make_core``
    """
    settings = policy_settings(policy, calibration, **changes)
    core = _core(settings, calibration, implementation)
    return scheduler_of(core, settings, calibration, round_barrier=round_barrier)


def scheduler_of(
    core: SchedulerCore,
    settings: PolicySettings,
    calibration: Calibration,
    *,
    round_barrier: bool = False,
) -> Scheduler:
    """
    Return a scheduler that asks a core.

    :param core: made of these settings and this calibration; used by nobody else
    :param round_barrier: whether requests are served in common rounds (an ablation)
    """
    asked = RoundBarrier(core) if round_barrier else core
    return Scheduler(asked, calibration, settings.limits(calibration))


def _core(
    settings: PolicySettings, calibration: Calibration, implementation: Implementation
) -> SchedulerCore:
    if implementation == 'native':
        return native_core(calibration, settings)
    if implementation == 'reference':
        # here: an engine has no use for it
        from xinfer_ros.sched.reference.core import reference_core

        return reference_core(calibration, settings)
    known = ', '.join(get_args(Implementation))
    raise ConfigError(f'a scheduler implementation {implementation} is not known; known: {known}')
