# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with a device, and with which exit code the engine process tells it."""

from enum import Enum, IntEnum

from xinfer_ros.errors import ModelError


class Fault(Enum):
    """What an error of a unit says about the device."""

    MODEL = 'model'
    OUT_OF_MEMORY = 'out_of_memory'
    DEVICE_LOST = 'device_lost'


class ExitCode(IntEnum):
    """How the engine process has ended; docs/architecture.md lists them for operators."""

    OK = 0
    FAILED = 1
    REFUSED = 2
    HUNG = 3
    DEVICE_LOST = 4
    OUT_OF_MEMORY = 5
    MODEL_FAILS = 6

    @property
    def advice(self) -> str:
        """Return what it means and what to do, for the log."""
        return {
            ExitCode.OK: 'it was told to',
            ExitCode.FAILED: 'its log above says why',
            ExitCode.REFUSED: 'its settings can not be served; its log above says what to mend',
            ExitCode.HUNG: 'a unit did not end in time; look for a hung driver or a busy host',
            ExitCode.DEVICE_LOST: 'the device reported an error that only a new process cures',
            ExitCode.OUT_OF_MEMORY: 'the device ran out of memory; lower max_in_stages or the '
            'batches of the calibration, or free the device of other processes',
            ExitCode.MODEL_FAILS: 'every unit failed; its log above says why',
        }[self]


class EngineFailure(ModelError):
    """
    The engine process must end: nothing that it does can cure the device.

    :param code: with which it ends
    """

    def __init__(self, code: ExitCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class HangWatch:
    """
    Tells when units begin to take too long, and when they get on again.

    :param hung_ns: age of a unit at which it is taken for hung [ns]
    """

    def __init__(self, hung_ns: int) -> None:
        self._hung_ns = hung_ns
        self.hangs = False

    def has_changed(self, oldest_unit_ns: int) -> bool:
        """Take in the age of the oldest unit; return whether ``hangs`` has changed by that."""
        before, self.hangs = self.hangs, oldest_unit_ns > self._hung_ns
        return self.hangs != before


def told_by(returncode: int | None) -> str:
    """
    Return what the end of an engine process tells, for the log.

    :param returncode: as ``subprocess`` gives it: negative for a signal, None if it still runs
    """
    if returncode is None:
        return 'it still runs'
    if returncode < 0:
        return f'signal {-returncode}'
    if returncode in ExitCode._value2member_map_:
        code = ExitCode(returncode)
        return f'exit code {returncode}, {code.name}: {code.advice}'
    return f'exit code {returncode}'
