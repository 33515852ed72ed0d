# SPDX-License-Identifier: Apache-2.0
"""The episodes of the gateway: who waits, who may call, and when a place becomes free."""

from collections import deque
from collections.abc import Callable, Mapping

from xinfer_ros.brain.controller import (
    Action,
    Arrival,
    Controller,
    Decision,
    Gauges,
    Standing,
    TurnUsage,
)
from xinfer_ros.brain.gateway.episode import Ending, Episode, EpisodeRequest, Outcome
from xinfer_ros.brain.gateway.fingerprint import Fingerprint
from xinfer_ros.errors import Reason, Rejected

DECISIONS = 50  # kept to be shown


class Admission:
    """
    Keeps every episode, and drives one controller for each LLM server.

    Values in, decisions out: no clock, thread or I/O. After each event the controllers decide, and
    ``changed`` hears of every episode that somebody may be waiting for.

    :param controllers: by name of the LLM server, in the order of preference
    :param max_episodes: the most that are kept at once
    :param changed: called with an episode that has changed
    """

    def __init__(
        self,
        controllers: Mapping[str, Controller],
        max_episodes: int,
        changed: Callable[[Episode], None],
    ) -> None:
        self._controllers = dict(controllers)
        self._max_episodes = max_episodes
        self._changed = changed
        self._episodes: dict[str, Episode] = {}
        self._down: dict[str, str] = {}
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS)  # the newest last

    def episodes(self) -> list[Episode]:
        """Return every episode that is not over."""
        return list(self._episodes.values())

    def get(self, episode_id: str) -> Episode:
        """
        Return an episode.

        :raises Rejected: UNKNOWN_EPISODE
        """
        episode = self.find(episode_id)
        if episode is None:
            raise Rejected(
                Reason.UNKNOWN_EPISODE,
                f'no episode {episode_id[:140]!r}; it has ended, or was never opened',
            )
        return episode

    def find(self, episode_id: str) -> Episode | None:
        """Return an episode, None if it is unknown."""
        return self._episodes.get(episode_id)

    def controller(self, upstream: str) -> Controller:
        """Return the controller of an LLM server."""
        return self._controllers[upstream]

    def trouble(self, upstream: str) -> str:
        """Return why an LLM server is taken for dead, empty if it is not."""
        return self._down.get(upstream, '')

    def open(self, request: EpisodeRequest, lease_ns: int, now_ns: int) -> Episode:
        """
        Let an episode wait for a place; one of that id that is there already is returned.

        :param lease_ns: silence after which it ends [ns]
        :raises Rejected: REJECTED_EPISODE if the id is another robot's, NOT_ADMITTED if there are
            too many
        """
        known = self._episodes.get(request.episode)
        if known is not None:
            if known.request.robot != request.robot:
                raise Rejected(
                    Reason.REJECTED_EPISODE,
                    f'episode {request.episode} is of robot {known.request.robot}, not of '
                    f'{request.robot}; choose another id',
                )
            self.renew(known, now_ns)
            return known
        if len(self._episodes) >= self._max_episodes:
            raise Rejected(
                Reason.NOT_ADMITTED,
                f'there are {self._max_episodes} episodes, as many as max_episodes allows',
            )
        episode = Episode(
            request=request,
            upstream=self._choose(),
            arrived_ns=now_ns,
            lease_ns=lease_ns,
            lease_end_ns=now_ns + lease_ns,
            called_ns=now_ns,
        )
        self._episodes[episode.id] = episode
        self._arrive(episode, now_ns)
        self.settle(now_ns)
        return episode

    def _choose(self) -> str:
        """Return the server with the fewest episodes, a dead one only if all are."""
        counts = dict.fromkeys(self._controllers, 0)
        for episode in self._episodes.values():
            counts[episode.upstream] += 1
        up = [name for name in counts if name not in self._down]
        return min(up or list(counts), key=counts.__getitem__)

    def _arrive(self, episode: Episode, now_ns: int) -> None:
        request = episode.request
        self._controllers[episode.upstream].arrive(
            Arrival(
                episode=episode.id,
                robot=request.robot,
                priority=request.priority,
                context_hint=request.context_hint,
            ),
            now_ns,
        )

    def renew(self, episode: Episode, now_ns: int) -> None:
        """Take note of a sign of life of an episode's agent."""
        episode.called_ns = now_ns
        episode.extend(now_ns)

    def call_opened(self, episode: Episode, now_ns: int) -> None:
        """
        Take note of a call of the agent, which may wait: its lease can't expire meanwhile.

        :raises Rejected: UNKNOWN_EPISODE if the episode is about to end
        """
        if episode.outcome is not None:
            raise Rejected(Reason.UNKNOWN_EPISODE, f'episode {episode.id} is ending')
        episode.calls += 1
        self.renew(episode, now_ns)

    def call_closed(self, episode: Episode, now_ns: int) -> None:
        """Take note that a call of the agent is over, however it ended."""
        episode.calls -= 1
        self.renew(episode, now_ns)

    def turn_started(self, episode: Episode, prompt: Fingerprint, now_ns: int) -> None:
        """Take note of a call that goes to the LLM server; calls at once are one turn."""
        kept_share = episode.fingerprint.kept_share(prompt)
        episode.running += 1
        if episode.running == 1 or prompt.size > episode.fingerprint.size:
            episode.fingerprint = prompt
        if episode.running == 1:
            episode.usage, episode.is_computed = None, False
            self._controllers[episode.upstream].turn_started(
                episode.id, now_ns, kept_share=kept_share
            )
            self.settle(now_ns)

    def turn_answering(self, episode: Episode, now_ns: int) -> None:
        """Take note of the first bytes of an answer."""
        if not episode.is_over:
            self._controllers[episode.upstream].turn_answering(episode.id, now_ns)

    def turn_ended(
        self,
        episode: Episode,
        usage: TurnUsage | None,
        now_ns: int,
        ending: Ending = Ending.WHOLE,
    ) -> None:
        """
        Take note that a call has left the LLM server; the next may have to wait.

        :param usage: None if the server told none
        """
        episode.count(usage, ending)
        if episode.running or episode.is_over:
            return
        controller = self._controllers[episode.upstream]
        if episode.is_computed:
            controller.turn_ended(episode.id, episode.usage, now_ns)
        else:
            controller.turn_refused(episode.id, now_ns)
        if episode.outcome is not None:
            self._remove(episode, now_ns)
        elif episode.upstream in self._down:
            self._flee(episode, now_ns)
        elif episode.standing is Standing.DRAINING:
            self._park(episode, now_ns)
        self.settle(now_ns)

    def end(self, episode: Episode, outcome: Outcome, now_ns: int) -> None:
        """End an episode, as soon as the turn that runs has ended."""
        if episode.outcome is not None:
            return
        episode.outcome = outcome
        if episode.running:
            self._tell(episode)
            return
        self._remove(episode, now_ns)
        self.settle(now_ns)

    def _remove(self, episode: Episode, now_ns: int) -> None:
        self._unpark(episode, now_ns)
        episode.is_over = True
        del self._episodes[episode.id]
        self._controllers[episode.upstream].ended(episode.id, now_ns)
        self._tell(episode)

    def expire(self, now_ns: int) -> None:
        """End every episode without a sign of life; calls that are open are one."""
        for episode in self.episodes():
            if not episode.calls and episode.lease_end_ns <= now_ns:
                self.end(episode, Outcome.LEASE_EXPIRED, now_ns)

    def next_expiry_ns(self) -> int | None:
        """Return when the next lease may expire, None if none does [ns]."""
        return min((e.lease_end_ns for e in self._episodes.values() if not e.calls), default=None)

    def metrics(self, upstream: str, gauges: Gauges | None, now_ns: int) -> None:
        """Pass on what an LLM server says of itself, None if it can't be read."""
        self._controllers[upstream].metrics(gauges, now_ns)
        self.settle(now_ns)

    def upstream_down(self, upstream: str, why: str, now_ns: int) -> None:
        """Take an LLM server for dead: its episodes move to another one, or are told."""
        self._down[upstream] = why
        for episode in self.episodes():
            if episode.upstream == upstream:
                self._flee(episode, now_ns)
        self.settle(now_ns)

    def _flee(self, episode: Episode, now_ns: int) -> None:
        """Let an episode leave a dead server between its turns, if another one gets on."""
        some_live = len(self._down) < len(self._controllers)
        if some_live and not episode.running and episode.outcome is None:
            self._move(episode, now_ns)
        self._tell(episode)

    def _move(self, episode: Episode, now_ns: int) -> None:
        """Let an episode begin anew on another server, where its context is not cached yet."""
        self._controllers[episode.upstream].ended(episode.id, now_ns)
        self._unpark(episode, now_ns)
        episode.upstream, episode.standing = self._choose(), Standing.QUEUED
        episode.fingerprint = Fingerprint()
        if episode.was_admitted:
            episode.parked_since_ns = now_ns
        self._arrive(episode, now_ns)

    def upstream_up(self, upstream: str, now_ns: int) -> None:
        """Take an LLM server for alive again."""
        del self._down[upstream]
        for episode in self.episodes():
            if episode.upstream in self._down:
                self._flee(episode, now_ns)
            elif episode.upstream == upstream:
                self._tell(episode)
        self.settle(now_ns)

    def settle(self, now_ns: int) -> None:
        """Carry out what the controllers decide; to be called at least once a second."""
        for controller in self._controllers.values():
            for decision in controller.decide(now_ns):
                self._carry_out(decision, now_ns)

    def _carry_out(self, decision: Decision, now_ns: int) -> None:
        episode = self._episodes[decision.episode]
        self.decisions.append(decision)
        if decision.action is Action.PARK:
            if episode.running:
                episode.standing = Standing.DRAINING
                self._tell(episode)
            else:
                self._park(episode, now_ns)
            return
        self._unpark(episode, now_ns)
        episode.standing, episode.was_admitted = Standing.ADMITTED, True
        episode.called_ns = now_ns
        self._tell(episode)

    def _park(self, episode: Episode, now_ns: int) -> None:
        episode.standing, episode.parked_since_ns = Standing.PARKED, now_ns
        self._tell(episode)

    def _unpark(self, episode: Episode, now_ns: int) -> None:
        episode.totals.parked_ns = episode.parked_ns(now_ns)
        episode.parked_since_ns = None

    def _tell(self, episode: Episode) -> None:
        episode.version += 1
        self._changed(episode)
