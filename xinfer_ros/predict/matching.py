# SPDX-License-Identifier: Apache-2.0
"""Which calibration a server uses, and whether it is of what it serves."""

from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import Calibration, load_calibration, shipped_names
from xinfer_ros.predict.identity import Identity, remedy

_TABLE = 'table'  # a model that takes the times of a calibration
_TABLE_DEFAULT = 'paper'


def is_table(model: str) -> bool:
    """
    Return whether a model takes its times from a calibration.

    :param model: the setting ``model``
    """
    return model.partition(':')[0] == _TABLE


def serving_calibration(named: str, model: str) -> Calibration:
    """
    Return the calibration that a server uses.

    :param named: the setting ``calibration``; empty: the one that ships with the model, or that
        a table model has its times from
    :param model: the setting ``model``
    :raises ConfigError: if there is none, or it is not good; with the command that makes one
    """
    if is_table(model):
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
