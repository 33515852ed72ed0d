# SPDX-License-Identifier: Apache-2.0
"""The node of emulated robots: registers them, sends what they ask, and takes the answers in."""

from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node

from xinfer_ros.config import ExecutorConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError, Reason, Rejected
from xinfer_ros.msg import ActionChunk
from xinfer_ros.msg import Observation as ObservationMsg
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.emulated_robot import EmulatedAnswer, EmulatedDraft
from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.emulated_deck import Deck
from xinfer_ros.ros.emulated_registrar import EmulatedRegistrar
from xinfer_ros.ros.node_list import robot_ids

MATCH_S, LOOK_S = 10.0, 0.02
STEP = 5  # moments between the places at which robots of one episode begin


class EmulatedNode(Node):
    """
    Topics of the robots of one process; everything runs in its only thread.

    :param plan: the robots and what they send
    :param config: of the executors that they stand for
    :param decks: what is sent, an episode each
    :param clock: the steady clock
    """

    def __init__(
        self, plan: LoadPlan, config: ExecutorConfig, decks: Sequence[Deck], clock: Clock
    ) -> None:
        name = f'emulated_{plan.robots[0]}'
        super().__init__(name, start_parameter_services=False, enable_rosout=False)
        self._plan, self._config, self._steady = plan, config, clock
        self._decks = [decks[number % len(decks)] for number in plan.robots]
        known = robot_ids(max(plan.robots) + 1)
        robots = [known[number] for number in plan.robots]
        self.registrar = EmulatedRegistrar(self, config, robots, self._decks, plan.instance, clock)
        self._observations = [
            self.create_publisher(ObservationMsg, f'/{robot}/observation', qos.OBSERVATION)
            for robot in robots
        ]
        for place, robot in enumerate(robots):
            self.create_subscription(
                ActionChunk, f'/{robot}/action_chunk', self._taker(place), qos.CHUNK
            )
        self._fleet: EmulatedFleet | None = None

    def join(self, spin: Callable[[float], None]) -> None:
        """
        Register every robot, and wait until its topics have found the server's.

        :param spin: lets events come in for so long [s]
        :raises ConfigError: if the server refuses a robot, or does not answer in time
        """
        self.registrar.register_all(spin, self._plan.start_timeout_s)
        end_ns = self._steady.now_ns() + round(MATCH_S * 1e9)
        while not all(each.get_subscription_count() for each in self._observations):
            if self._steady.now_ns() > end_ns:
                raise ConfigError(
                    f'the server has registered the robots but does not listen after {MATCH_S:g} '
                    's; more than 32 processes of a domain do not find each other on one host'
                )
            spin(LOOK_S)

    @property
    def spacing_ns(self) -> int:
        """Return the spacing of the rows that the robots play [ns]."""
        return round(self._config.keyframe_spacing_s * 1e9)

    def serve(self, fleet: EmulatedFleet) -> None:
        """Let answers go to these robots from now on, in the order of the plan."""
        self._fleet = fleet

    def send(self, place: int, draft: EmulatedDraft) -> None:
        """Publish the request of a robot, with the next of its recorded moments."""
        deck, plan = self._decks[place], self._plan
        turn = draft.request_id + STEP * plan.robots[place]
        moment = deck.moments[turn % len(deck.moments)]
        request = RequestDraft(
            session=self.registrar.sessions[place],
            episode=plan.episode,
            request_id=draft.request_id,
            executed_steps=draft.executed_steps,
            leftover=draft.leftover,
            commitment_steps=draft.commitment_steps,
            budget_ns=draft.budget_ns,
            minimum_period_ns=plan.period_ns,
            answered_request_id=draft.answered_request_id,
            round_trip_ns=draft.round_trip_ns,
        )
        message = convert.from_draft(request, deck.joint_names, moment.state, moment.frames)
        message.stamp = self.get_clock().now().to_msg()
        message.instruction = deck.instruction
        message.keyframe_spacing_ns = self.spacing_ns
        self._observations[place].publish(message)

    def _taker(self, place: int) -> Callable[[Any], None]:
        return lambda message: self._take(place, message)

    def _take(self, place: int, message: Any) -> None:
        now_ns = self._steady.now_ns()
        if self._fleet is None:
            return
        answer = self._answer(place, message)
        self._fleet.take(place, now_ns, answer)
        if answer.is_ours and answer.reason is Reason.UNKNOWN_SESSION:
            self.registrar.renew(place)

    def _answer(self, place: int, message: Any) -> EmulatedAnswer:
        """Return an answer; one that can't be read is not ours."""
        try:
            answer = convert.to_answer(message)
        except Rejected as refusal:
            return EmulatedAnswer(
                request_id=message.request_id, is_ours=False, reason=refusal.reason
            )
        ours = (self.registrar.sessions[place], self._plan.episode)
        return EmulatedAnswer(
            request_id=answer.request_id,
            is_ours=(answer.session, answer.episode) == ours,
            reason=answer.reason,
            start_step=answer.start_step,
            rows=answer.rows,
            times=answer.times,
            ask_after_ns=answer.ask_after_ns,
        )
