# SPDX-License-Identifier: Apache-2.0
"""Whether the server serves, and with which engine."""

from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.status import ServerPhase, ServerStatus
from xinfer_ros.errors import Reason, Rejected


class Serving:
    """
    The engine in force and the phase of the server. Not thread-safe: its owner locks.

    :param first_epoch: number of the first engine life
    """

    def __init__(self, first_epoch: int) -> None:
        self.epoch = first_epoch
        self.is_active = True
        self._phase = ServerPhase.STARTING
        self._life: EngineLife | None = None
        self._model = ''

    def engine(self) -> EngineLife:
        """
        Return the engine that serves.

        :raises Rejected: SHUTDOWN or NOT_READY if there is none
        """
        if self._phase is ServerPhase.STOPPED:
            raise Rejected(Reason.SHUTDOWN, 'the server is shutting down')
        if not self.is_active:
            raise Rejected(Reason.NOT_READY, 'the server is not active')
        if self._life is None:
            raise Rejected(Reason.NOT_READY, 'the engine is starting; server_state tells when')
        return self._life

    def begin(self, life: EngineLife) -> None:
        """Serve with a warm engine."""
        self._life, self.epoch, self._model = life, life.epoch, life.contract.name
        if self._phase is ServerPhase.STARTING:
            self._phase = ServerPhase.READY

    def end(self, next_epoch: int) -> None:
        """Wait for the next engine."""
        self._life, self.epoch = None, next_epoch
        if self._phase is ServerPhase.READY:
            self._phase = ServerPhase.STARTING

    def stop(self) -> None:
        """Serve nobody any more."""
        self._phase = ServerPhase.STOPPED

    def status(self, num_robots: int, max_robots: int) -> ServerStatus:
        """Return what the server announces of itself."""
        return ServerStatus(
            epoch=self.epoch,
            phase=self._phase if self.is_active else ServerPhase.STOPPED,
            model=self._model,
            num_robots=num_robots,
            max_robots=max_robots,
            engine_pid=self._life.pid if self._life is not None else 0,
        )
