# SPDX-License-Identifier: Apache-2.0
"""Tests of the modules of ros/ that import no rclpy."""
