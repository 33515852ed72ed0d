# SPDX-License-Identifier: Apache-2.0
"""When an LLM server is taken for dead, and when for alive again."""

from xinfer_ros.brain.gateway.progress import Probe, ProgressWatch, Verdict

S = 1_000_000_000
LIMIT = 8 * S


def _watch() -> ProgressWatch:
    return ProgressWatch(LIMIT, 2 * S)


def test_a_server_whose_tokens_stop_is_down_within_ten_seconds_of_the_last() -> None:
    """BG-03: whatever its health endpoint says."""
    watch = _watch()
    watch.started(1, 0)
    for now in range(5):
        watch.moved(now * S)
    assert watch.judge(4 * S + LIMIT - 1) is Verdict.SAME
    assert watch.judge(4 * S + LIMIT) is Verdict.DOWN
    assert watch.judge(4 * S + LIMIT) is Verdict.SAME
    assert 'nothing has come of any for 8.0 s' in watch.why


def test_a_server_without_work_is_not_down() -> None:
    watch = _watch()
    watch.started(1, 0)
    watch.ended(1)
    assert watch.judge(100 * S) is Verdict.SAME
    assert not watch.take_probe(100 * S)
    watch.started(2, 200 * S)
    assert watch.judge(201 * S) is Verdict.SAME


def test_work_that_only_metrics_show_is_progress() -> None:
    """A long prompt alone gives no token for more than ten seconds."""
    watch = _watch()
    watch.started(1, 0)
    for now in range(30):
        watch.counted(float(now), now * S)
        assert watch.judge(now * S) is Verdict.SAME
    for now in range(30, 38):
        watch.counted(29.0, now * S)
    assert watch.judge(37 * S) is Verdict.DOWN


def test_a_silent_server_is_probed_and_a_completed_probe_is_progress() -> None:
    watch = _watch()
    watch.started(1, 0)
    assert not watch.take_probe(3 * S)
    assert watch.look_again_ns(3 * S) == round(3.2 * S)
    assert watch.take_probe(4 * S)
    assert not watch.take_probe(5 * S)
    assert watch.probed(Probe.SHUT_OUT, 4 * S) is Verdict.SAME
    assert watch.take_probe(8 * S) is False
    assert watch.probed(Probe.TOKEN, 6 * S) is Verdict.SAME
    assert watch.judge(10 * S) is Verdict.SAME
    assert watch.take_probe(10 * S)
    assert watch.judge(14 * S) is Verdict.DOWN


def test_a_dead_server_is_up_again_after_one_completed_probe() -> None:
    """BG-03."""
    watch = _watch()
    assert watch.failed('does not accept connections', 0) is Verdict.DOWN
    assert watch.failed('does not accept connections', S) is Verdict.SAME
    assert not watch.take_probe(S)
    assert watch.look_again_ns(S) == 2 * S
    assert watch.take_probe(2 * S)
    assert watch.probed(Probe.NOTHING, 3 * S) is Verdict.SAME
    assert watch.is_down
    assert watch.take_probe(4 * S)
    assert watch.probed(Probe.TOKEN, 4 * S) is Verdict.UP
    assert not watch.is_down
