# SPDX-License-Identifier: Apache-2.0
"""Response budgets that follow what the robot is doing; see docs/budgets.md."""
