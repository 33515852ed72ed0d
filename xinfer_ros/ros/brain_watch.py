# SPDX-License-Identifier: Apache-2.0
"""What a robot's executor sees of its LLM brain."""

from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.msg import BrainState
from xinfer_ros.robot.brain_wait import BrainWait
from xinfer_ros.ros import qos
from xinfer_ros.ros.entities import Entities

_NAMES = {
    BrainState.QUEUED: 'QUEUED',
    BrainState.PARKED: 'PARKED',
    BrainState.BRAIN_UNAVAILABLE: 'BRAIN_UNAVAILABLE',
}


class BrainWatch:
    """
    Listens to ``brain_state`` of a robot.

    :param entities: makes the subscription
    :param config: of the executor
    :param clock: the steady clock
    """

    def __init__(self, entities: Entities, config: ExecutorConfig, clock: Clock) -> None:
        self._clock = clock
        self._wait = BrainWait(holds=config.brain_wait == 'hold')
        entities.create_subscription(BrainState, 'brain_state', self._on_state, qos.STATE)

    def _on_state(self, message: Any) -> None:
        name = _NAMES.get(message.state, '')
        self._wait.heard(
            f'{name}: {message.detail}' if name and message.detail else name,
            has_episode=message.state != BrainState.NONE,
            now_ns=self._clock.now_ns(),
        )

    def word(self, now_ns: int) -> str:
        """Return why the brain keeps the robot waiting, empty if it does not."""
        return self._wait.word(now_ns)

    def trouble(self, now_ns: int) -> str:
        """Return why the robot must hold for its brain's sake, empty if it need not."""
        return self._wait.trouble(now_ns)
