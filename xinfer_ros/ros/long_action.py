# SPDX-License-Identifier: Apache-2.0
"""ROS actions whose goals last for minutes, without a thread or a waiting callback for each."""

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from xinfer_ros.ros import qos


class LongGoal:
    """
    A goal that lasts; it stays ACCEPTED until ``end``, since rclpy would look for its end all the
    time while it were executed.

    :param handle: of rclpy
    :param forget: called at the end
    """

    def __init__(self, handle: Any, forget: Callable[['LongGoal'], None]) -> None:
        self._handle, self._forget = handle, forget
        self.request = handle.request
        self.key = bytes(handle.goal_id.uuid)
        self.result: Any = None
        self._is_good = False

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.result is not None

    def feedback(self, message: Any) -> None:
        """Publish feedback."""
        if not self.is_over:
            self._handle.publish_feedback(message)

    def end(self, result: Any, *, good: bool) -> None:
        """End it; once, what comes later changes nothing."""
        if self.is_over:
            return
        self.result, self._is_good = result, good
        self._handle.execute()

    def finish(self) -> Any:
        """Give the goal its last state; return the result."""
        if self._handle.is_cancel_requested:
            self._handle.canceled()
        elif self._is_good:
            self._handle.succeed()
        else:
            self._handle.abort()
        self._forget(self)
        return self.result


class LongAction:
    """
    The server of such an action; everything is called in rclpy's thread.

    :param node: whose action it is
    :param kind: its type
    :param name: its name
    :param check: returns why a goal is refused, empty if it is not
    :param begin: called with each goal that is accepted
    :param cancel: called with a goal that is to be cancelled; it ends when it is ready
    """

    def __init__(
        self,
        node: Node,
        kind: Any,
        name: str,
        *,
        check: Callable[[Any], str],
        begin: Callable[[LongGoal], None],
        cancel: Callable[[LongGoal], None],
    ) -> None:
        self._node, self._name = node, name
        self._check, self._begin, self._cancel = check, begin, cancel
        self._goals: dict[bytes, LongGoal] = {}
        self._server = ActionServer(
            node,
            kind,
            name,
            self._finish,
            goal_callback=self._consider,
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancelled,
            result_service_qos_profile=qos.RESULTS,
        )

    @property
    def num_goals(self) -> int:
        """Return how many goals do not have their last state yet."""
        return len(self._goals)

    def _consider(self, request: Any) -> GoalResponse:
        if why := self._check(request):
            self._node.get_logger().warning(f'{self._name}: goal refused: {why}')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _accepted(self, handle: Any) -> None:
        goal = LongGoal(handle, self._forget)
        self._goals[goal.key] = goal
        self._begin(goal)

    def _cancelled(self, handle: Any) -> CancelResponse:
        goal = self._goals.get(bytes(handle.goal_id.uuid))
        if goal is None or goal.is_over:
            return CancelResponse.REJECT
        # after this callback the goal is CANCELING: only then may it end
        self._node.executor.create_task(self._cancel, goal)
        return CancelResponse.ACCEPT

    def _forget(self, goal: LongGoal) -> None:
        del self._goals[goal.key]

    def _finish(self, handle: Any) -> Any:
        return self._goals[bytes(handle.goal_id.uuid)].finish()

    def close(self) -> None:
        """Remove the action."""
        self._server.destroy()
