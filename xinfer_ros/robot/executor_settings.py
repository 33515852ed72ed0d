# SPDX-License-Identifier: Apache-2.0
"""What a robot asks of its server."""

from dataclasses import dataclass

from xinfer_ros.config import ExecutorConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """
    What a robot asks of its server.

    :param robot_id: unique in the fleet
    :param joint_names: the robot's joints in its own order
    :param keyframe_spacing_ns: spacing of rows, Delta [ns]
    :param minimum_period_ns: ``TE`` [ns]
    :param backoff_ns: pause after a refusal [ns]
    :param commitment_steps: ``d``, or where it starts if it is measured [steps]
    :param budget_ns: response budget ``b`` until a Budget says otherwise [ns]
    :param commitment_margin_steps: rows that ``d`` is more than was measured; None: ``d`` is fixed
    """

    robot_id: str
    joint_names: tuple[str, ...]
    keyframe_spacing_ns: int
    minimum_period_ns: int
    backoff_ns: int
    commitment_steps: int
    budget_ns: int
    commitment_margin_steps: int | None = None

    @classmethod
    def from_config(
        cls, config: ExecutorConfig, robot_id: str, joint_names: tuple[str, ...]
    ) -> 'ExecutorSettings':
        """Return the settings of a node in integer nanoseconds."""
        is_measured = config.commitment == 'measured'
        return cls(
            robot_id=robot_id,
            joint_names=joint_names,
            keyframe_spacing_ns=round(config.keyframe_spacing_s * 1e9),
            minimum_period_ns=round(config.minimum_period_s * 1e9),
            backoff_ns=round(config.refusal_backoff_s * 1e9),
            commitment_steps=config.commitment_steps,
            budget_ns=round(config.response_budget_s * 1e9),
            commitment_margin_steps=config.commitment_margin_steps if is_measured else None,
        )
