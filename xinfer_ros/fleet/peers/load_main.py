# SPDX-License-Identifier: Apache-2.0
"""A process of emulated robots that drive a peer: the same robots as ours, over its wire."""

import argparse
import asyncio
import functools
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from xinfer_ros.core.clock import Clock, MonotonicClock
from xinfer_ros.episodes.sources import find_episode
from xinfer_ros.errors import ConfigError, Reason
from xinfer_ros.fleet.peers.peer_links import Answered, FloorLink, OpenpiLink, PeerLink
from xinfer_ros.fleet.peers.peer_requests import Mark, PeerRequests
from xinfer_ros.robot.emulated_fleet import EmulatedFleet
from xinfer_ros.robot.emulated_robot import EmulatedAnswer
from xinfer_ros.robot.load_plan import LoadPlan
from xinfer_ros.robot.load_signals import DONE, PROGRESS, READY, say, wait_for_start

SPACING_NS = 30_000_000  # of the rows; nothing of a peer's answer is played
PROGRESS_S = 0.5
STEP = 5  # moments between the places at which robots of one episode begin


class PeerLoad:
    """
    Robots in closed loop at a peer; lives in one loop.

    :param plan: the robots and what they send
    :param requests: what is sent, an episode each
    :param clock: the steady clock
    """

    def __init__(self, plan: LoadPlan, requests: Sequence[PeerRequests], clock: Clock) -> None:
        self._plan, self._requests, self._clock = plan, requests, clock
        self._links: list[PeerLink] = []
        self._fleet: EmulatedFleet | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done = asyncio.Event()

    async def join(self, system: str, port: int) -> None:
        """
        Connect every robot.

        :raises ConfigError: if the peer does not answer
        """
        loop = asyncio.get_running_loop()
        for place in range(len(self._plan.robots)):
            make = functools.partial(_link, system, port, functools.partial(self._take, place))
            try:
                _, link = await loop.create_connection(make, '127.0.0.1', port)
                await asyncio.wait_for(link.ready, self._plan.start_timeout_s)
            except (OSError, asyncio.TimeoutError) as error:
                raise ConfigError(f'{system} does not answer at port {port}: {error}') from error
            self._links.append(link)

    async def play(self, fleet: EmulatedFleet) -> None:
        """
        Let robots send when they are due until every one is done.

        :raises ConfigError: if the peer closes a connection
        """
        self._fleet = fleet
        self._step()
        while not self._done.is_set():
            say(sys.stdout, PROGRESS, fleet.num_sent, fleet.answered)
            if any(link.is_closed for link in self._links):
                raise ConfigError('the peer has closed a connection')
            try:
                await asyncio.wait_for(self._done.wait(), PROGRESS_S)
            except asyncio.TimeoutError:
                continue

    def _step(self) -> None:
        """Send what is due, and look again when the next is."""
        fleet, plan = self._fleet, self._plan
        if fleet is None:
            return
        while (due := fleet.send(self._clock.now_ns())) is not None:
            place, draft = due
            number = plan.robots[place]
            requests = self._requests[number % len(self._requests)]
            mark = Mark(robot=number, request_id=draft.request_id)
            turn = draft.request_id + STEP * number
            self._links[place].send(requests.request(turn, mark), mark)
        if self._timer is not None:
            self._timer.cancel()
        next_ns = fleet.next_ns
        if next_ns is None:
            self._done.set()
            return
        wait_s = max(next_ns - self._clock.now_ns(), 0) / 1e9
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._woke, next_ns)

    def _woke(self, wanted_ns: int) -> None:
        assert self._fleet is not None
        self._fleet.woke(self._clock.now_ns(), wanted_ns)
        self._step()

    def _take(self, place: int, mark: Mark | None) -> None:
        now_ns = self._clock.now_ns()
        if self._fleet is None:
            return
        number = self._plan.robots[place]
        answer = EmulatedAnswer(
            request_id=-1 if mark is None else mark.request_id,
            is_ours=mark is not None and mark.robot == number,
            reason=Reason.OK,
        )
        self._fleet.take(place, now_ns, answer)
        self._step()


def _link(system: str, port: int, answered: Answered) -> FloorLink | OpenpiLink:
    return FloorLink(answered) if system == 'floor' else OpenpiLink(port, answered)


async def _run(plan: LoadPlan, system: str, port: int, shipped: Path) -> int:
    episodes = [find_episode(text, shipped).read() for text in plan.episodes]
    clock = MonotonicClock()
    load = PeerLoad(plan, [PeerRequests(episode) for episode in episodes], clock)
    await load.join(system, port)
    say(sys.stdout, READY)
    start_ns = await asyncio.to_thread(wait_for_start, sys.stdin)
    if start_ns is None:
        return 0
    fleet = EmulatedFleet(plan, start_ns, SPACING_NS)
    gc.collect()
    gc.freeze()  # what is there stays: no send waits while it is looked through
    await load.play(fleet)
    fleet.log().save(Path(plan.log))
    say(sys.stdout, DONE)
    return 0


def main() -> int:
    """Run the robots of a plan at a peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plan', type=Path, required=True, help='file of the plan')
    parser.add_argument('--system', choices=('openpi', 'floor'), required=True)
    parser.add_argument('--port', type=int, required=True, help='of the peer, on this machine')
    parser.add_argument('--shipped', type=Path, required=True, help='folder of the episodes')
    own = parser.parse_args()
    try:
        return asyncio.run(_run(LoadPlan.read(own.plan), own.system, own.port, own.shipped))
    except ConfigError as error:
        print(f'xinfer_ros: {error}', file=sys.stderr)
        return 2


if __name__ == '__main__':
    raise SystemExit(main())
