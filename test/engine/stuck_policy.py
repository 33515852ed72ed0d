# SPDX-License-Identifier: Apache-2.0
"""A policy object that never answers a request, for an engine process."""

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


def make(options: ModelOptions) -> tuple[ModelContract, Stuck]:
    """Return the contract and the policy object."""
    contract = ModelContract(
        name='stuck', cameras=(), joint_names=('a',), horizon=4, max_commitment_steps=2,
        stages=(Stage.ACTION,),
    )  # fmt: skip
    return contract, Stuck()


def broken(options: ModelOptions) -> tuple[ModelContract, Stuck]:
    """Fail, as a factory with a mistake does."""
    raise RuntimeError('no weights')
