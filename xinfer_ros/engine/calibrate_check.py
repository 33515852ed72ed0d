# SPDX-License-Identifier: Apache-2.0
"""Whether the calibration of a server is of the model and the device that it serves with."""

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.machine import device_name, is_cpu
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.identity import Identity, model_facts
from xinfer_ros.predict.matching import check_match, is_timed


def served_identity(config: ServerConfig, contract: ModelContract) -> Identity:
    """
    Return what is served; ask after the model is made.

    :param config: of the server
    :param contract: of its model
    """
    on_cpu = is_cpu(config.device)
    dtype = config.model_dtype
    if dtype == 'auto':
        dtype = 'float32' if on_cpu else 'bfloat16'
    return Identity(
        setting=' '.join((config.model, *_flags(config))),
        model=contract.name,
        model_facts=model_facts(
            contract,
            dtype=dtype,
            jacobian=config.rtc_jacobian,
            torch_threads=config.torch_threads if on_cpu else 0,
        ),
        device=device_name(config.device),
    )


def check_calibration(
    config: ServerConfig, calibration: Calibration, contract: ModelContract
) -> str:
    """
    Compare a server's calibration with its model and device; ask after the model is made.

    :returns: a warning for the log, empty if all is well
    :raises ConfigError: if it must not be used, with both and the remedy
    """
    if is_timed(config.model):  # it takes the times that it is told
        return ''
    return check_match(
        calibration,
        served_identity(config, contract),
        named=bool(config.calibration),
        allow_mismatch=config.calibration_mismatch == 'warn',
    )


def _flags(config: ServerConfig) -> list[str]:
    """Return what `xinfer calibrate` must be told beside the model, for what counts."""
    flags = []
    if config.rtc_jacobian != 'identity':
        flags += ['--rtc-jacobian', config.rtc_jacobian]
    if config.model_dtype != 'auto':
        flags += ['--dtype', config.model_dtype]
    if config.torch_threads != 1:
        flags += ['--torch-threads', str(config.torch_threads)]
    return flags
