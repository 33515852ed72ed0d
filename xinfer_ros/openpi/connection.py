# SPDX-License-Identifier: Apache-2.0
"""One websocket connection: metadata, then an answer to each observation, in turn."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from aiohttp import WSMessage, WSMsgType, web

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.openpi.answers import Answers
from xinfer_ros.openpi.packer import pack
from xinfer_ros.openpi.reply import chunk, is_passing, metadata
from xinfer_ros.openpi.robot_session import RobotSession
from xinfer_ros.openpi.unpacker import UnreadableMessage, Value, described, unpack

READY_POLL_S = 0.1
GOING, REFUSED, FAILED = 1001, 1008, 1011  # close codes of RFC 6455
END_S = 2.0
log = logging.getLogger(__name__)


class Connection:
    """
    Reads ahead one observation at most, so that a robot which sends too fast has to wait.

    Lives in the loop of the door.

    :param socket: prepared, without automatic pongs
    :param make_session: makes the robot's session, given what makes its outlets; raises NOT_READY
        while there is no model
    :param epoch: returns the life of the engine
    :param max_bytes: of an observation [bytes]
    :param patience_s: how long a robot may take nothing of what is sent [s]
    :param clock: the server's monotonic clock
    """

    def __init__(
        self,
        socket: web.WebSocketResponse,
        make_session: Callable[[Callable[[], Answers]], RobotSession],
        epoch: Callable[[], int],
        max_bytes: int,
        patience_s: float,
        clock: Clock,
    ) -> None:
        self._socket, self._make_session, self._epoch = socket, make_session, epoch
        self._max_bytes, self._patience_s = max_bytes, patience_s
        self._clock = clock
        self._inbox: asyncio.Queue[WSMessage] = asyncio.Queue(1)
        self._answers = Answers()
        self._session: RobotSession | None = None
        self._previous_ns: int | None = None
        self._rests = asyncio.Event()  # nobody waits for an answer

    async def run(self) -> bool:
        """
        Serve until the robot leaves, or has sent what nothing can be made of.

        :returns: whether it is worth a goodbye: not if it takes nothing any more
        """
        tasks = [asyncio.ensure_future(work) for work in (self._read(), self._serve())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return True
        except (ConnectionError, asyncio.TimeoutError):
            return False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._session is not None:
                self._session.leave()

    async def end(self) -> None:
        """Close it, as soon as who waits has been told."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._rests.wait(), END_S)
        with contextlib.suppress(ConnectionError, RuntimeError, asyncio.TimeoutError):
            await asyncio.wait_for(self._socket.close(code=GOING), END_S)

    def _outlet(self) -> Answers:
        self._answers = Answers()
        return self._answers

    async def ping(self) -> None:
        """Ask whether the robot is there; if it says so, its lease goes on."""
        with contextlib.suppress(ConnectionError, RuntimeError, asyncio.TimeoutError):
            await asyncio.wait_for(self._socket.ping(), self._patience_s)

    async def _read(self) -> None:
        """Take in messages until the robot leaves; pings are answered whatever is computed."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.PING:
                await self._sent(self._socket.pong(message.data))
            elif message.type is WSMsgType.PONG:
                self._renew()
            elif message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                await self._inbox.put(message)
            else:
                return

    def _renew(self) -> None:
        if self._session is not None and self._session.robot is not None:
            with contextlib.suppress(Rejected):  # its next observation is told
                self._session.join()

    async def _serve(self) -> None:
        self._session = session = await self._begin()
        with contextlib.suppress(Rejected):  # its first observation is told
            session.join()
        told = metadata(session.contract, session.robot, self._epoch(), session.keys.wanted())
        await self._sent(self._socket.send_bytes(pack(told)))
        goes_on = True
        while goes_on:
            self._rests.set()
            message = await self._inbox.get()
            self._rests.clear()
            goes_on = await self._answer(session, message)
        self._rests.set()

    async def _begin(self) -> RobotSession:
        """Return the session as soon as there is a model; robots wait for their metadata."""
        while True:
            try:
                return self._make_session(self._outlet)
            except Rejected as refusal:
                if refusal.reason is not Reason.NOT_READY:
                    await self._refuse(str(refusal))
                    raise ConnectionError from refusal
                await asyncio.sleep(READY_POLL_S)

    async def _answer(self, session: RobotSession, message: WSMessage) -> bool:
        """Answer one message; return whether the connection goes on."""
        arrival_ns = self._clock.now_ns()
        try:
            observation = self._observation(message)
            answer = await self._ask(session, observation, arrival_ns)
            if answer is None:  # it was silent for a lease; as good as new, once
                session.leave()
                answer = await self._ask(session, observation, arrival_ns)
            if answer is None:
                raise Rejected(Reason.UNKNOWN_SESSION, 'ask again')
        except UnreadableMessage as fault:
            return await self._refuse(f'unreadable: {fault}')
        except Rejected as refusal:
            return await self._refuse(str(refusal), stays=is_passing(refusal.reason))
        except Exception:
            log.exception('an observation of a websocket robot could not be taken in')
            return await self._refuse('the server has failed; its log says how', code=FAILED)
        if answer.reason is not Reason.OK:
            text = f'{answer.reason.name}: {answer.detail}'
            return await self._refuse(text, stays=is_passing(answer.reason))
        await self._sent(self._socket.send_bytes(pack(chunk(answer, self._previous_ns))))
        session.answered(answer)
        self._previous_ns = self._clock.now_ns() - arrival_ns
        return True

    async def _ask(
        self, session: RobotSession, observation: dict[str, Value], arrival_ns: int
    ) -> Answer | None:
        """Return the answer, None if the robot is not registered any more."""
        request_id = session.ask(observation, arrival_ns)
        answer = await self._answers.to(request_id)
        is_lost = answer is not None and answer.reason is Reason.UNKNOWN_SESSION
        return None if is_lost else answer

    def _observation(self, message: WSMessage) -> dict[str, Value]:
        if message.type is not WSMsgType.BINARY:
            raise UnreadableMessage('text was sent; an observation is binary, in msgpack')
        if len(message.data) > self._max_bytes:
            raise UnreadableMessage(
                f'the observation has {len(message.data) / 1e6:.1f} MB; '
                f'{self._max_bytes / 1e6:g} MB are allowed by websocket_max_mb; send pictures as '
                'uint8 in the size that the model takes'
            )
        observation = unpack(message.data)
        if not isinstance(observation, dict):
            raise UnreadableMessage(
                f'an observation is a dictionary; received {described(observation)}'
            )
        return observation

    async def _sent(self, sending: Awaitable[None]) -> None:
        """Wait until it is on its way; give up a robot that takes nothing any more."""
        await asyncio.wait_for(sending, self._patience_s)

    async def _refuse(self, text: str, *, stays: bool = False, code: int = REFUSED) -> bool:
        """Send an error as openpi does, as text, and close unless the robot may ask again."""
        await self._sent(self._socket.send_str(text))
        if not stays:
            await self._socket.close(code=code, message=b'see the text before')
        return stays
