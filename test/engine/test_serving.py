# SPDX-License-Identifier: Apache-2.0
"""Whether the server serves, and with which engine."""

import pytest

from xinfer_ros.engine.serving import Serving
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason, Rejected

from .scripted_engine import Bench


def _refusal(serving: Serving) -> Reason:
    with pytest.raises(Rejected) as caught:
        serving.engine()
    return caught.value.reason


def test_an_engine_serves_from_its_beginning_to_its_end() -> None:
    bench = Bench()
    bench.engine.become_ready(3)
    life = bench.engine.life
    assert life is not None
    serving = Serving(3)
    assert _refusal(serving) is Reason.NOT_READY
    serving.begin(life)
    assert serving.engine() is life
    assert serving.status(2, 5).phase is ServerPhase.READY
    serving.end(4)
    assert _refusal(serving) is Reason.NOT_READY
    status = serving.status(2, 5)
    assert (status.phase, status.epoch, status.engine_pid) == (ServerPhase.STARTING, 4, 0)
    assert (status.num_robots, status.max_robots) == (2, 5)


def test_an_inactive_server_does_not_serve_and_a_stopped_one_never_again() -> None:
    bench = Bench()
    bench.engine.become_ready(3)
    assert bench.engine.life is not None
    serving = Serving(3)
    serving.begin(bench.engine.life)
    serving.is_active = False
    assert _refusal(serving) is Reason.NOT_READY
    assert serving.status(0, 1).phase is ServerPhase.STOPPED
    serving.is_active = True
    serving.stop()
    assert _refusal(serving) is Reason.SHUTDOWN
    serving.begin(bench.engine.life)
    assert serving.status(0, 1).phase is ServerPhase.STOPPED
