# SPDX-License-Identifier: Apache-2.0
"""A LeRobot policy as a policy of one call, without an import of LeRobot."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from xinfer_ros.core.contract import ModelContract
from xinfer_ros.errors import ModelError
from xinfer_ros.models.opaque import PolicyObservation


class ChunkPolicy(Protocol):
    """The part of a ``PreTrainedPolicy`` that is used; ``select_action`` never is."""

    def predict_action_chunk(self, batch: Any) -> Tensor:
        """Return ``(B, H, action_dim)`` in the policy's own units."""
        ...


class LeRobotPolicy:
    """
    Asks a LeRobot policy for a whole chunk.

    ``select_action`` is never called: it keeps one queue of actions a policy, which all robots
    would share. Real-time chunking of LeRobot is not used either: it wants the leftover in the
    policy's own units, which the robot does not have.

    Written against the documented interface of LeRobot 0.4 to 0.6 and tested with a stand-in;
    LeRobot itself is not among the packages that this one is tested with.

    :param policy: in evaluation mode, on its device
    :param preprocessor: takes a frame of tensors by feature name without batch axis, returns a
        batch; the pipeline that ``make_pre_post_processors`` returns
    :param postprocessor: takes ``(B, action_dim)``, returns it in robot units; the other pipeline
    :param contract: joints in the order of the policy's state and action features
    :param image_keys: feature of each camera; None for ``observation.images.<camera>``
    """

    def __init__(
        self,
        policy: ChunkPolicy,
        preprocessor: Callable[[dict[str, Any]], Any],
        postprocessor: Callable[[Tensor], Any],
        contract: ModelContract,
        image_keys: Mapping[str, str] | None = None,
    ) -> None:
        self._policy, self._contract = policy, contract
        self._preprocessor, self._postprocessor = preprocessor, postprocessor
        default = {camera.name: f'observation.images.{camera.name}' for camera in contract.cameras}
        self._image_keys = default if image_keys is None else dict(image_keys)

    @torch.inference_mode()
    def predict(self, observation: PolicyObservation) -> npt.NDArray[np.float32]:
        """
        Return a chunk in robot units, ``(H, action_dim)`` float32, cut to the contract's horizon.

        Noise is drawn from torch's global generator, which is seeded anew for each request.

        :raises ModelError: if the policy's answer has no horizon axis
        """
        torch.manual_seed(observation.seed % 2**63)
        chunk = self._policy.predict_action_chunk(self._preprocessor(self._frame(observation)))
        if chunk.ndim == 2:
            chunk = chunk.unsqueeze(0)
        if chunk.ndim != 3 or chunk.shape[0] != 1:
            raise ModelError(
                f'{self._contract.name}: predict_action_chunk must return shape (1, H, '
                f'action_dim); received {tuple(chunk.shape)}'
            )
        rows = [
            self._postprocessor(chunk[:, row])  # the pipeline takes one row of each robot
            for row in range(min(chunk.shape[1], self._contract.horizon))
        ]
        return torch.cat(rows).float().cpu().numpy()

    def _frame(self, observation: PolicyObservation) -> dict[str, Any]:
        frame: dict[str, Any] = {
            'observation.state': torch.from_numpy(observation.state),
            'task': observation.instruction,
        }
        for camera, picture in observation.images.items():
            pixels = torch.from_numpy(picture).permute(2, 0, 1).contiguous()
            frame[self._image_keys[camera]] = pixels.float() / 255.0
        return frame
