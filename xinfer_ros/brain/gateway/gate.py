# SPDX-License-Identifier: Apache-2.0
"""Holds the calls of an episode until it may go on, and says so meanwhile."""

import math
from collections.abc import Callable

from xinfer_ros.brain.controller import Standing
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.bells import Bells
from xinfer_ros.brain.gateway.episode import Episode, EpisodeRequest, Outcome, Phase
from xinfer_ros.brain.gateway.reply import Refused, Reply
from xinfer_ros.brain.gateway.view import phase_of, view_of
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import Reason

RETRY_S = 5  # if nobody can tell how long it takes


def seconds_ns(seconds: float) -> int:
    """Return seconds as nanoseconds."""
    return round(seconds * 1e9)


class Gate:
    """
    Lets the turns of admitted episodes pass.

    An episode that was never admitted is refused after its longest wait, with 429; one that was
    is never refused: its turn waits, and after ``heartbeat_after_s`` the agent gets signs of life.

    :param admission: of the gateway
    :param bells: ring at its changes
    :param config: settings
    :param clock: the steady clock
    """

    def __init__(
        self, admission: Admission, bells: Bells, config: BrainConfig, clock: Clock
    ) -> None:
        self._admission, self._bells, self._clock = admission, bells, clock
        self._config = config

    def implicit(self, episode_id: str, robot: str) -> EpisodeRequest:
        """
        Return the request for an episode that nobody has opened.

        :param robot: whose it is, empty: the episode counts as a robot of its own
        :raises Refused: UNKNOWN_EPISODE if episodes must be opened
        """
        if not self._config.implicit_episodes:
            raise Refused(
                Reason.UNKNOWN_EPISODE,
                f'no episode {episode_id[:140]!r}; open it by POST /episodes or the ROS action '
                'RunEpisode, or set implicit_episodes',
            )
        return EpisodeRequest(
            episode=episode_id,
            robot=robot or episode_id,
            max_wait_ns=seconds_ns(self._config.max_wait_s),
            is_implicit=True,
        )

    def refusal(self, episode: Episode) -> Refused | None:
        """Return why an episode can't go on at all, None if it can or only has to wait."""
        if episode.outcome is Outcome.SHUTDOWN:
            return Refused(Reason.SHUTDOWN, 'the gateway ends')
        if episode.outcome is not None or episode.is_over:
            return Refused(Reason.UNKNOWN_EPISODE, f'episode {episode.id} has ended')
        if why := self._admission.trouble(episode.upstream):
            retry_s = max(math.ceil(self._config.probe_period_s), 1)
            return Refused(
                Reason.BRAIN_UNAVAILABLE, why, retry_after_s=retry_s, episode=episode.id
            )
        return None

    def not_admitted(self, episode: Episode) -> Refused:
        """Return the refusal of an episode that has waited as long as it wanted to."""
        view = view_of(self._admission, episode, self._clock.now_ns())
        estimate_s = RETRY_S if view.estimate_ns is None else math.ceil(view.estimate_ns / 1e9)
        return Refused(
            Reason.NOT_ADMITTED,
            f'no place for episode {episode.id} yet: {view.detail}; it keeps its place in line '
            'while it shows signs of life',
            retry_after_s=min(max(estimate_s, 1), 60),
            position=view.position,
            episode=episode.id,
        )

    async def place(self, episode: Episode, max_wait_ns: int) -> None:
        """
        Return when an episode has been admitted for the first time.

        :raises Refused: NOT_ADMITTED, BRAIN_UNAVAILABLE, or UNKNOWN_EPISODE if it has ended
        """

        def is_told() -> bool:
            return episode.was_admitted or self.refusal(episode) is not None

        await self._wait(episode, is_told, max_wait_ns)
        refusal = self.refusal(episode)
        if refusal is not None:
            raise refusal
        if not episode.was_admitted:
            raise self.not_admitted(episode)

    async def admitted(self, episode: Episode, max_wait_ns: int) -> bool:
        """Wait until an episode has been admitted; False: it has waited long enough, or ended."""

        def is_told() -> bool:
            return episode.was_admitted or episode.outcome is not None

        await self._wait(episode, is_told, max_wait_ns)
        return episode.was_admitted

    async def _wait(self, episode: Episode, is_told: Callable[[], bool], max_wait_ns: int) -> None:
        """Wait until an episode has been told something, but no longer than this."""
        end_ns = self._clock.now_ns() + max_wait_ns
        while not is_told() and (left_ns := end_ns - self._clock.now_ns()) > 0:
            await self._bells.wait(episode, left_ns / 1e9)

    async def open(self, episode: Episode, reply: Reply) -> None:
        """
        Return when the turn of an episode may go to the LLM server.

        :raises Refused: NOT_ADMITTED, BRAIN_UNAVAILABLE, or UNKNOWN_EPISODE if it has ended
        """
        began_ns = self._clock.now_ns()
        await self.place(episode, episode.request.max_wait_ns)
        while episode.standing is not Standing.ADMITTED:
            await self._parked(episode, reply, self._clock.now_ns() - began_ns)
            refusal = self.refusal(episode)
            if refusal is not None:
                raise refusal

    async def _parked(self, episode: Episode, reply: Reply, waited_ns: int) -> None:
        """Wait a while, and give a sign of life if it takes long."""
        quiet_ns = seconds_ns(self._config.heartbeat_after_s) - waited_ns
        if quiet_ns > 0:
            await self._bells.wait(episode, quiet_ns / 1e9)
            return
        view = view_of(self._admission, episode, self._clock.now_ns())
        await reply.keep_alive(view.detail or Phase.PARKED.name)
        if phase_of(self._admission, episode) is Phase.PARKED:
            await self._bells.wait(episode, self._config.heartbeat_s)
