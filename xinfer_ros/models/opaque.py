# SPDX-License-Identifier: Apache-2.0
"""Any policy object with one call as a model of one stage."""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Protocol

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.core.slot import SlotArrays
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError, ModelError, Reason, Rejected
from xinfer_ros.models.adapter import (
    Refusals,
    StagedModel,
    frozen_steps,
    preserved_slot,
    write_sample,
)
from xinfer_ros.models.options import ModelOptions

PREFIX = 'python:'


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObservation:
    """
    What a policy is asked with, in robot units and in the contract's order; its own copies.

    :param images: ``(height, width, 3)`` uint8 RGB by camera name; cameras that the robot lacks
        are left out
    :param state: ``(action_dim,)`` float32
    :param instruction: the task in words
    :param leftover: ``(rows, action_dim)`` float32, the unexecuted tail of the running chunk, row
        0 is executed next; no rows if there is none
    :param frozen_steps: first rows of the answer that will be the leftover's [steps]
    :param seed: of this request's randomness: the same observation shall give the same chunk
    """

    images: Mapping[str, npt.NDArray[np.uint8]]
    state: npt.NDArray[np.float32]
    instruction: str
    leftover: Rows
    frozen_steps: int
    seed: int


class Policy(Protocol):
    """Whatever turns an observation into a chunk in one call, without memory of the last one."""

    def predict(self, observation: PolicyObservation) -> npt.ArrayLike:
        """
        Return a chunk, ``(H, action_dim)``, in robot units and in the contract's joint order.

        :raises Rejected: if it can't answer this observation, for a reason that helps the robot
        """
        ...


class OpaqueModel:
    """
    A staged model around a policy: Action is its one stage, and asks for one request at a time.

    Its chunks are not tied to the leftover by guidance: the frozen rows of the leftover are
    written over the policy's own, and the seam after them is as rough as the policy leaves it. A
    policy that knows real-time chunking gets leftover and frozen rows, and can do better.

    :param contract: of the policy; its stages are replaced by Action alone
    :param policy: what is asked
    :param thread_safe: whether workers may ask at once; if not, they take turns
    """

    def __init__(
        self, contract: ModelContract, policy: Policy, *, thread_safe: bool = False
    ) -> None:
        self.contract = replace(contract, stages=(Stage.ACTION,))
        self._policy = policy
        self._turn: AbstractContextManager[object] = (
            nullcontext() if thread_safe else threading.Lock()
        )
        self._slots: SlotArrays | None = None

    def bind(self, slots: SlotArrays, plan: LanePlan) -> None:
        """Take the slots; nothing passes between stages."""
        expected = (self.contract.horizon, self.contract.action_dim)
        if slots.actions.shape[1:] != expected:
            raise ConfigError(
                f'slots hold actions of shape {slots.actions.shape[1:]}, the contract of '
                f'{self.contract.name} says {expected}'
            )
        self._slots = slots

    def run(self, stage: Stage, batch: Batch) -> Refusals:
        """
        Ask the policy for each request, one after the other.

        A request whose call fails is refused MODEL_FAILED if another one of the batch succeeds.

        :raises ModelError: if the model is not bound, the stage is not Action, or every call of
            the batch fails: then it is the policy that is broken, not one request
        """
        if self._slots is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        if stage is not Stage.ACTION:
            raise ModelError(f'{self.contract.name} has no stage {stage.name}, only ACTION')
        refused: Refusals = {}
        failure: ModelError | None = None
        num_failed = 0
        for slot in batch.slot_ids:
            try:
                self._answer(slot, self._slots)
            except Rejected as refusal:
                refused[slot] = refusal
            except ModelError as error:
                failure, num_failed = error, num_failed + 1
                refused[slot] = Rejected(Reason.MODEL_FAILED, f'{self.contract.name} has failed')
        if failure is not None and num_failed == len(batch.slot_ids):
            raise failure
        return refused

    def warm_up(self) -> None:
        """
        Ask once on slot 0, and leave the slot as it was.

        :raises ModelError: if the policy fails or answers in another shape than its contract says
        """
        if self._slots is None:
            raise ModelError(f'{self.contract.name} has no slots; call bind() first')
        with preserved_slot(self._slots, 0):
            write_sample(self._slots, 0, 'warm up')
            self._answer(0, self._slots)

    def _answer(self, slot: int, slots: SlotArrays) -> None:
        observation = self._observation(slot, slots)
        try:
            with self._turn:
                answer = self._policy.predict(observation)
            rows = np.asarray(answer, np.float32)
        except (Rejected, ModelError):
            raise
        except Exception as error:
            raise ModelError(f'{self.contract.name}: the policy has failed: {error}') from error
        self._check(rows)
        frozen = observation.frozen_steps
        slots.actions[slot] = rows
        slots.actions[slot, :frozen] = slots.leftover[slot, :frozen]

    def _observation(self, slot: int, slots: SlotArrays) -> PolicyObservation:
        contract, steps = self.contract, int(slots.leftover_steps[slot])
        text = bytes(slots.instruction[slot, : int(slots.instruction_bytes[slot])])
        return PolicyObservation(
            images={
                camera.name: slots.images[index][slot].copy()
                for index, camera in enumerate(contract.cameras)
                if slots.camera_present[slot, index]
            },
            state=slots.state[slot].copy(),
            instruction=text.decode(),
            leftover=slots.leftover[slot, :steps].copy(),
            frozen_steps=frozen_steps(slots, slot, contract.max_commitment_steps),
            seed=int(slots.seed[slot]),
        )

    def _check(self, rows: Rows) -> None:
        """Refuse what must not reach a robot; says what was expected and what came."""
        expected = (self.contract.horizon, self.contract.action_dim)
        if rows.shape != expected:
            raise ModelError(
                f'{self.contract.name}: the policy must answer with shape {expected}, '
                f'rows and joints; received {rows.shape}'
            )
        finite = np.isfinite(rows)
        if not finite.all():
            row, column = (int(index) for index in np.argwhere(~finite)[0])
            raise ModelError(
                f'{self.contract.name}: the policy must answer with finite values; '
                f'received {rows[row, column]} in row {row}, column {column}'
            )


def make_opaque_model(name: str, options: ModelOptions) -> StagedModel:
    """
    Return the model of a factory that is named in the configuration.

    :param name: ``python:package.module:factory``; the factory gets ``options`` and returns a
        contract and a policy, or a model in stages of its own (``StagedModel``)
    :param options: for the factory
    :raises ConfigError: if it can't be found, or returns something else
    """
    module_name, _, factory_name = name.removeprefix(PREFIX).partition(':')
    if not module_name or not factory_name:
        raise ConfigError(f'model {name!r}: write {PREFIX}package.module:factory')
    try:
        factory = getattr(import_module(module_name), factory_name, None)
    except ImportError as error:
        raise ConfigError(
            f'model {name!r}: module {module_name} cannot be imported: {error}; install it into '
            'the environment of the server, or add its folder to PYTHONPATH'
        ) from error
    if not callable(factory):
        raise ConfigError(f'model {name!r}: module {module_name} has no function {factory_name}')
    made = factory(options)
    if all(callable(getattr(made, name, None)) for name in ('bind', 'run', 'warm_up')):
        staged: StagedModel = made  # a model in stages of its own
        return staged
    match made:
        case (ModelContract() as contract, policy) if callable(getattr(policy, 'predict', None)):
            return OpaqueModel(contract, policy)
    raise ConfigError(
        f'model {name!r}: {factory_name} must return a ModelContract and a policy with a method '
        f'predict; it returned {type(made).__name__}'
    )
