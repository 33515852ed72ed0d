# SPDX-License-Identifier: Apache-2.0
"""Places in the fleet for emulated robots: asked for before the start, renewed when forgotten."""

from collections.abc import Callable, Sequence
from typing import Any

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.ros.convert import from_registration
from xinfer_ros.ros.emulated_deck import Deck
from xinfer_ros.srv import RegisterRobot

ANSWER_NS = 2_000_000_000
LOOK_S = 0.02


class EmulatedRegistrar:
    """
    Registers the robots of one process; belongs to its only thread.

    :param node: makes the client
    :param config: of the executors that are emulated
    :param robots: id of each robot
    :param decks: what each of them sends
    :param instance: tells them from other robots of the same ids
    :param clock: the steady clock
    """

    def __init__(
        self,
        node: Any,
        config: ExecutorConfig,
        robots: Sequence[str],
        decks: Sequence[Deck],
        instance: int,
        clock: Clock,
    ) -> None:
        self._config, self._robots, self._decks = config, robots, decks
        self._instance, self._clock = instance, clock
        self._client = node.create_client(RegisterRobot, f'{config.server}/register_robot')
        self.sessions = [0] * len(robots)
        self.max_commitment_steps = 0

    def register_all(self, spin: Callable[[float], None], timeout_s: float) -> None:
        """
        Register every robot.

        :param spin: lets events come in for so long [s]
        :raises ConfigError: if the server refuses one, or is not ready in time
        """
        end_ns = self._clock.now_ns() + round(timeout_s * 1e9)
        for place in range(len(self._robots)):
            while not self._register(place, spin):
                if self._clock.now_ns() > end_ns:
                    raise ConfigError(
                        f'{self._client.srv_name} registered {place} of {len(self._robots)} '
                        f'robots within {timeout_s:g} s; does the server run and is it ready, '
                        'with the same ROS_DOMAIN_ID?'
                    )
                spin(LOOK_S)

    def _register(self, place: int, spin: Callable[[float], None]) -> bool:
        """Ask once; return whether the place was granted."""
        if not self._client.service_is_ready():
            return False
        future = self._client.call_async(self._request(place))
        asked_ns = self._clock.now_ns()
        while not future.done() and self._clock.now_ns() - asked_ns < ANSWER_NS:
            spin(LOOK_S)
        if not future.done():
            self._client.remove_pending_request(future)
            return False
        response = future.result()
        reason = Reason.of(response.reason)
        if reason not in (Reason.OK, Reason.NOT_READY):
            refusal = Rejected(reason, response.detail)
            raise ConfigError(f'the server refuses {self._robots[place]}: {refusal}')
        return self._granted(place, response)

    def renew(self, place: int) -> None:
        """Register a robot that the server has forgotten, while the others go on."""
        future = self._client.call_async(self._request(place))
        future.add_done_callback(lambda done: self._granted(place, done.result()))

    def _request(self, place: int) -> Any:
        deck, robot = self._decks[place], self._robots[place]
        registration = Registration(
            robot_id=robot,
            namespace=f'/{robot}',
            joint_names=deck.joint_names,
            cameras=deck.cameras,
            keyframe_spacing_ns=round(self._config.keyframe_spacing_s * 1e9),
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=self._instance,
        )
        return from_registration(registration, self._config.camera_transport)

    def _granted(self, place: int, response: Any) -> bool:
        if response.reason != Reason.OK:
            return False
        self.sessions[place] = response.session
        self.max_commitment_steps = response.max_commitment_steps
        return True
