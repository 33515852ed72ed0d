# SPDX-License-Identifier: Apache-2.0
"""The robot's joint names, and what a model calls the same joints."""

from collections.abc import Sequence


class JointTranslation:
    """
    Renames joints at the border to the server; their order stays.

    A name that is not known is passed on as it is, so that whoever compares names can say it.

    :param robot: names on the robot
    :param model: names in the model's contract, in the same order; empty: the same names
    """

    def __init__(self, robot: Sequence[str], model: Sequence[str]) -> None:
        pairs = list(zip(robot, model, strict=True)) if model else []
        self._to_model = dict(pairs)
        self._to_robot = {theirs: ours for ours, theirs in pairs}

    def to_model(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the model's names of the robot's joints."""
        return tuple(self._to_model.get(name, name) for name in names)

    def to_robot(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the robot's names of the model's joints."""
        return tuple(self._to_robot.get(name, name) for name in names)
