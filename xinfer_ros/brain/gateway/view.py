# SPDX-License-Identifier: Apache-2.0
"""What an episode looks like from outside."""

from xinfer_ros.brain.controller import Standing
from xinfer_ros.brain.gateway.admission import Admission
from xinfer_ros.brain.gateway.episode import Episode, EpisodeView, Outcome, Phase

_ENDINGS = {
    Outcome.ENDED: 'ended as wished',
    Outcome.NOT_ADMITTED: 'no place became free in time',
    Outcome.LEASE_EXPIRED: 'no sign of life: the lease has expired',
    Outcome.SHUTDOWN: 'the gateway ends',
}


def phase_of(admission: Admission, episode: Episode) -> Phase:
    """Return what an episode is told of itself."""
    if episode.is_over:
        return Phase.ENDED
    if episode.outcome is not None:
        return Phase.DRAINING
    if admission.trouble(episode.upstream):
        return Phase.BRAIN_UNAVAILABLE
    if episode.standing is Standing.QUEUED:
        return Phase.PARKED if episode.was_admitted else Phase.QUEUED
    return Phase[episode.standing.name]


def view_of(admission: Admission, episode: Episode, now_ns: int) -> EpisodeView:
    """Return an episode as it is at this moment."""
    phase, totals = phase_of(admission, episode), episode.totals
    place = None
    if phase.waits:
        place = admission.controller(episode.upstream).place(episode.id, now_ns)
    position = None if place is None else place.position
    return EpisodeView(
        episode=episode.id,
        robot=episode.request.robot,
        task=episode.request.task,
        upstream=episode.upstream,
        phase=phase,
        position=position,
        estimate_ns=None if place is None else place.estimate_ns,
        detail=_detail(admission, episode, phase, position),
        turns=totals.turns,
        prompt_tokens=totals.prompt_tokens,
        cached_tokens=totals.cached_tokens,
        output_tokens=totals.output_tokens,
        parked_ns=episode.parked_ns(now_ns),
        lease_left_ns=max(episode.lease_end_ns - now_ns, 0),
        outcome=episode.outcome,
        version=episode.version,
    )


def _detail(admission: Admission, episode: Episode, phase: Phase, position: int | None) -> str:
    if episode.outcome is not None:
        return _ENDINGS[episode.outcome]
    where = '' if position is None else f', number {position} in line'
    return {
        Phase.QUEUED: f'waits for a place{where}',
        Phase.ADMITTED: '',
        Phase.PARKED: f'parked at a turn boundary{where}: the contexts do not fit the cache',
        Phase.DRAINING: 'is parked when its turn has ended',
        Phase.BRAIN_UNAVAILABLE: admission.trouble(episode.upstream),
        Phase.ENDED: '',
    }[phase]
