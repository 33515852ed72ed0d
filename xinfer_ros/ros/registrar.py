# SPDX-License-Identifier: Apache-2.0
"""Asks the server for a place in the fleet on a robot's behalf."""

from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.commitment import misfit
from xinfer_ros.robot.joint_translation import JointTranslation
from xinfer_ros.robot.session import Grant
from xinfer_ros.ros.convert import from_registration
from xinfer_ros.ros.entities import Entities
from xinfer_ros.srv import RegisterRobot


class Registrar:
    """
    The client of the registration service; when to ask is decided by the executor's session.

    :param entities: makes the client
    :param config: of the executor
    :param robot_id: of the robot
    :param instance: tells this process from another one that claims the same id
    :param clock: the steady clock
    """

    def __init__(
        self,
        entities: Entities,
        config: ExecutorConfig,
        robot_id: str,
        instance: int,
        clock: Clock,
    ) -> None:
        self._node, self._config, self._clock = entities.node, config, clock
        self._robot_id, self._instance = robot_id, instance
        self._client = entities.create_client(RegisterRobot, f'{config.server}/register_robot')
        self._future: Any = None
        self.notice = 'not registered yet'

    def ask_if_due(self, executor: ChunkExecutor, now_ns: int) -> None:
        """Ask for registration, or for its renewal, if the session says so; does not wait."""
        if not executor.session.due(now_ns):
            return
        if not self._client.service_is_ready():
            self.notice = f'no server offers {self._client.srv_name}'
            return
        executor.session.asked(now_ns)
        if self._future is not None:
            self._client.remove_pending_request(self._future)  # its server is gone
        self._future = self._client.call_async(self._request(executor))
        self._future.add_done_callback(lambda done: self._answered(executor, done.result()))

    def _request(self, executor: ChunkExecutor) -> Any:
        config = self._config
        names = JointTranslation(executor.joint_names, config.model_joint_names)
        registration = Registration(
            robot_id=self._robot_id,
            namespace=self._node.get_namespace(),
            joint_names=names.to_model(executor.joint_names),
            cameras=config.camera_names,
            keyframe_spacing_ns=round(config.keyframe_spacing_s * 1e9),
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=self._instance,
        )
        return from_registration(registration, config.camera_transport)

    def _answered(self, executor: ChunkExecutor, response: Any) -> None:
        now_ns = self._clock.now_ns()
        if response.reason == Reason.OK:
            grant = Grant(
                session=response.session,
                epoch=response.epoch,
                lease_ns=response.lease_ns,
                max_commitment_steps=response.max_commitment_steps,
            )
            executor.granted(grant, now_ns)
            self.notice = ''
            self._check_commitment(response.horizon)
            return
        refusal = Rejected(Reason.of(response.reason), response.detail)
        executor.session.refused(refusal, now_ns)
        self.notice = str(refusal)
        if refusal.reason is not Reason.NOT_READY:  # which is no more than waiting
            executor.refuse(refusal)
            self.notice = f'the server refuses this robot: {self.notice}'

    def _check_commitment(self, horizon: int) -> None:
        if text := misfit(self._config, horizon):
            self._node.get_logger().warning(text, once=True)
