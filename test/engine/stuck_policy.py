# SPDX-License-Identifier: Apache-2.0
"""Policy objects that never answer a request, for an engine process."""

import threading
from typing import Any

import numpy as np

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.options import ModelOptions


class Stuck:
    """Warms up, and then waits for what never comes."""

    def predict(self, observation: Any) -> Any:
        """Never return if nobody says what to do."""
        if not observation.instruction:
            threading.Event().wait()
        return np.zeros((4, 1), np.float32)


class StuckAtOnce:
    """Does not even warm up."""

    def predict(self, observation: Any) -> Any:
        """Never return."""
        threading.Event().wait()


class Hungry:
    """Warms up, and then finds no memory."""

    def predict(self, observation: Any) -> Any:
        """Raise if nobody says what to do."""
        if not observation.instruction:
            raise MemoryError('no room')
        return np.zeros((4, 1), np.float32)


def make(options: ModelOptions) -> tuple[ModelContract, Stuck]:
    """Return the contract and the policy object."""
    return _contract(), Stuck()


def make_stuck_at_once(options: ModelOptions) -> tuple[ModelContract, StuckAtOnce]:
    """Return the contract and the policy object."""
    return _contract(), StuckAtOnce()


def make_hungry(options: ModelOptions) -> tuple[ModelContract, Hungry]:
    """Return the contract and the policy object."""
    return _contract(), Hungry()


def broken(options: ModelOptions) -> tuple[ModelContract, Stuck]:
    """Fail, as a factory with a mistake does."""
    raise RuntimeError('no weights')


def _contract() -> ModelContract:
    return ModelContract(
        name='stuck', cameras=(), joint_names=('a',), horizon=4, max_commitment_steps=2,
        stages=(Stage.ACTION,),
    )  # fmt: skip
