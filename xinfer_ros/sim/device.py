# SPDX-License-Identifier: Apache-2.0
"""The device of a scenario: units progress at its true rates, whatever the scheduler believes."""

from xinfer_ros.predict.device import Executing, SimulatedDevice

__all__ = ['Executing', 'SimulatedDevice']
