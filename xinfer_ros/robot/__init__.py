# SPDX-License-Identifier: Apache-2.0
"""What runs on a robot: the action queue, the handoff and the next send; no ROS."""
