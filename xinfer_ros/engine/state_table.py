# SPDX-License-Identifier: Apache-2.0
"""Which request holds which state of the model, and how far it has come."""

from dataclasses import dataclass
from enum import Enum

from xinfer_ros.core.stage import Stage


class SlotState(Enum):
    """How far a request has come; a state is free again when its request has ended."""

    EMPTY = 'empty'
    VIT = 'vit'
    PREFILLED = 'prefilled'
    ACTION = 'action'
    DONE = 'done'


# what a state must be when a unit of the stage starts, and when it has ended
_BEFORE = {
    Stage.VIT: SlotState.EMPTY,
    Stage.PREFILL: SlotState.VIT,
    Stage.ACTION: SlotState.PREFILLED,
}
_AFTER = {
    Stage.VIT: SlotState.VIT,
    Stage.PREFILL: SlotState.PREFILLED,
    Stage.ACTION: SlotState.DONE,
}


@dataclass(slots=True)
class _Held:
    state_id: int
    state: SlotState


class StateTable:
    """
    The states of the model that requests hold from the start of ViT to their end.

    Out of order is a mistake of the engine, not of a robot: it raises RuntimeError.

    :param num_states: how many there are
    """

    def __init__(self, num_states: int) -> None:
        self._free = list(range(num_states - 1, -1, -1))
        self._held: dict[int, _Held] = {}

    def start(self, key: int, stage: Stage) -> int:
        """Note that a unit of a stage starts; return the state of the request."""
        if stage is Stage.VIT and key not in self._held:
            if not self._free:
                raise RuntimeError('the scheduler has started more requests than there are states')
            self._held[key] = _Held(self._free.pop(), SlotState.EMPTY)
        held = self._held.get(key)
        if held is None or held.state is not _BEFORE[stage]:
            found = 'no state' if held is None else held.state.name
            raise RuntimeError(f'request {key}: {stage.name} starts at {found}')
        held.state = SlotState.ACTION if stage is Stage.ACTION else SlotState.VIT
        return held.state_id

    def end(self, key: int, stage: Stage) -> None:
        """Note that a unit of a stage has ended well."""
        self._held[key].state = _AFTER[stage]

    def release(self, key: int) -> None:
        """Free the state of a request that has ended, if it holds one."""
        held = self._held.pop(key, None)
        if held is not None:
            self._free.append(held.state_id)

    def state(self, key: int) -> SlotState:
        """Return how far a request has come."""
        held = self._held.get(key)
        return held.state if held is not None else SlotState.EMPTY
