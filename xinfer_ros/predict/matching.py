# SPDX-License-Identifier: Apache-2.0
"""Which calibration a server uses, and whether it is of what it serves."""

import math

import numpy as np

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import (
    MAX_MS,
    MIN_WORK_MS,
    Calibration,
    load_calibration,
    shipped_names,
)
from xinfer_ros.predict.identity import Identity, remedy

_TABLE = 'table'  # a model that takes the times of a calibration
_TABLE_DEFAULT = 'paper'
FIXED = 'fixed'  # a model that takes the time that its name says
_LEAST_FIXED_MS = 0.1  # what a policy plans with for a model of no time at all


def is_timed(model: str) -> bool:
    """
    Return whether a model takes the times that its name says, whatever the device.

    :param model: the setting ``model``
    """
    return model.partition(':')[0] in (_TABLE, FIXED)


def fixed_time_ms(model: str) -> float:
    """
    Return the time that a fixed model takes [ms].

    :param model: the setting ``model``, ``fixed:MS``
    :raises ConfigError: if that is no time
    """
    text = model.partition(':')[2]
    try:
        time_ms = float(text)
    except ValueError:
        time_ms = math.nan
    if not 0.0 <= time_ms <= MAX_MS:
        raise ConfigError(
            f'model {model}: {text!r} is no time; {FIXED}:MS with 0 to {MAX_MS:g} ms is allowed, '
            f'such as {FIXED}:5'
        )
    return time_ms


def fixed_calibration(model: str) -> Calibration:
    """
    Return the calibration of a fixed model: all of its time in Action, one unit at a time.

    :param model: the setting ``model``, ``fixed:MS``
    :raises ConfigError: if that is no time
    """
    time_ms = max(fixed_time_ms(model), _LEAST_FIXED_MS)
    return Calibration(
        name=FIXED,
        device='any',
        model=FIXED,
        source='its name',
        work_ms=(MIN_WORK_MS, MIN_WORK_MS, time_ms),
        overhead_ms=(0.0, 0.0, 0.0),
        output_ms=0.0,
        front_end_ms=0.0,
        reserved_ms=0.0,
        rates=np.ones((3, 2, 2, 2)),
    )


def serving_calibration(named: str, model: str) -> Calibration:
    """
    Return the calibration that a server uses.

    :param named: the setting ``calibration``; empty: the one that ships with the model, or that
        a table model has its times from
    :param model: the setting ``model``
    :raises ConfigError: if there is none, or it is not good; with the command that makes one
    """
    if not named and model.partition(':')[0] == FIXED:
        return fixed_calibration(model)
    if is_timed(model):
        return load_calibration(named or model.partition(':')[2] or _TABLE_DEFAULT)
    if not named and model not in shipped_names():
        raise ConfigError(
            f'no calibration ships for model {model}: {remedy(model)} and name the file in the '
            'setting calibration'
        )
    return load_calibration(named or model)


def check_match(
    calibration: Calibration, identity: Identity, *, named: bool, allow_mismatch: bool
) -> str:
    """
    Compare a calibration with what is served.

    :param named: whether the user has named it; one that ships is an estimate for other devices
    :param allow_mismatch: whether a named one of another model or device is used all the same
    :returns: a warning for the log, empty if all is well
    :raises ConfigError: if a named one must not be used
    """
    try:
        calibration.check(identity)
    except ConfigError as error:
        if named and not allow_mismatch:
            raise
        if named:
            return f'{error}. It is used, as calibration_mismatch says'
        return (
            f'the shipped calibration {calibration.name} was measured on {calibration.device}, '
            f'this is {identity.device}: predictions start as an estimate. For better ones, '
            f'{remedy(identity.setting)} and name the file in the setting calibration'
        )
    return ''
