# SPDX-License-Identifier: Apache-2.0
"""What the scheduler knows of a device: its calibration, and how far running work has come."""
