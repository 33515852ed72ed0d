# SPDX-License-Identifier: Apache-2.0
"""The compiled scheduling policies, put together from a calibration and settings."""

from dataclasses import asdict

from xinfer_ros import _native
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sched.settings_group import pipeline_ms

NativeCore = _native.Core


def native_core(calibration: Calibration, settings: PolicySettings) -> NativeCore:
    """Return a compiled core for one device."""
    device = _native.Device(
        work_ms=calibration.work_ms,
        overhead_ms=calibration.overhead_ms,
        output_ms=calibration.output_ms,
        front_end_ms=calibration.front_end_ms,
        batch_work=calibration.batch_work,
        infer_ms=pipeline_ms(calibration),
        rates=settings.device_rates(calibration.rates),
    )
    return _native.Core(device, settings.limits(calibration), settings.algorithm, asdict(settings))
