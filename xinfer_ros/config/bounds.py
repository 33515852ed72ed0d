# SPDX-License-Identifier: Apache-2.0
"""What several nodes have in common."""

MAX_BUDGET_S = 60.0
RCLPY_EXECUTOR = 'rclpy executor: events costs a third a message, single is the proven one'
