# SPDX-License-Identifier: Apache-2.0
"""24 robots with growing contexts before a cache for some of them, in virtual time."""

import pytest

from xinfer_ros.brain.scripted_engine import ScriptedCosts

from .bench import Bench
from .growing_sessions import Growth, Turns, run_sessions
from .virtual_time import VirtualLoop, run_virtually

ROBOTS, SECONDS = 24, 120.0
BAR_RPS, BAR_HITS = 1.8, 0.95
COSTS = ScriptedCosts(step_s=0.02, prefill_s=4e-4)  # 51,200 tokens


def _turns(controller: str) -> Turns:
    async def work(loop: VirtualLoop) -> Turns:
        async with Bench(loop, controller=controller, costs=(COSTS,)) as bench:
            return await run_sessions(bench, ROBOTS, SECONDS, Growth())

    return run_virtually(work)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_default_controller_keeps_the_cache_alive_where_everybody_at_once_does_not() -> None:
    """The same bars as for a real server: 1.8 times the requests, 95 % full-prefix hits."""
    everybody, default = _turns('open'), _turns('working_set')
    assert everybody.hit_share < 0.6
    assert default.done >= BAR_RPS * everybody.done
    assert default.hit_share >= BAR_HITS
