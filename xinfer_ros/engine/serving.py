# SPDX-License-Identifier: Apache-2.0
"""Whether the server serves, and with which engine."""

from xinfer_ros.engine.engine_life import EngineLife
from xinfer_ros.engine.seen import Watch
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
        self._hangs = self._watched = False

    def engine(self) -> EngineLife:
        """
        Return the engine that serves.

        :raises Rejected: SHUTDOWN or NOT_READY if there is none, HUNG if it does not get on
        """
        life = self.warm_engine()
        if self._hangs:
            raise Rejected(Reason.HUNG, 'a stage does not end; ask again')
        return life

    def warm_engine(self) -> EngineLife:
        """
        Return the engine, whether it gets on or not: its contract is in force.

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
        self._hangs = False
        if self._watched:
            life.send(Watch(on=True))
        if self._phase is ServerPhase.STARTING:
            self._phase = ServerPhase.READY

    def end(self, next_epoch: int) -> None:
        """Wait for the next engine."""
        self._life, self.epoch, self._hangs = None, next_epoch, False
        if self._phase is ServerPhase.READY:
            self._phase = ServerPhase.STARTING

    def hang(self, life: EngineLife, hangs: bool) -> None:
        """Note whether the engine gets on; of no consequence if another one is in force."""
        if self._life is life:
            self._hangs = hangs

    def watch(self, on: bool) -> None:
        """Let this engine, and those to come, tell what their lanes do, or not any more."""
        if self._life is not None and on != self._watched:
            self._life.send(Watch(on=on))
        self._watched = on

    def stop(self) -> None:
        """Serve nobody any more."""
        self._phase = ServerPhase.STOPPED

    def status(self, num_robots: int, max_robots: int) -> ServerStatus:
        """Return what the server announces of itself."""
        life = self._life
        return ServerStatus(
            epoch=self.epoch,
            phase=self._shown_phase(),
            model=self._model,
            num_robots=num_robots,
            max_robots=max_robots,
            engine_pid=life.pid if life is not None else 0,
            correction=life.correction if life is not None else (1.0, 1.0, 1.0),
            mirror_error=life.mirror_error if life is not None else 0.0,
            slots_used=life.slots_used if life is not None else 0,
            num_slots=life.slots.num_slots if life is not None else 0,
        )

    def _shown_phase(self) -> ServerPhase:
        if not self.is_active or self._phase is ServerPhase.STOPPED:
            return ServerPhase.STOPPED
        return ServerPhase.ERROR if self._hangs else self._phase
