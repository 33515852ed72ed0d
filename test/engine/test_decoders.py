# SPDX-License-Identifier: Apache-2.0
"""The threads that decode pictures."""

import queue
import threading
from pathlib import Path

import pytest

from xinfer_ros.engine.decoders import DECODE, DecodeThreads

TIMEOUT_S = 10.0


def test_work_is_done_in_the_order_of_the_calls_under_a_name_of_its_own() -> None:
    done: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()

    def work(number: int) -> None:
        comm = Path(f'/proc/self/task/{threading.get_native_id()}/comm').read_text()
        done.put((number, comm.strip()))

    decoders = DecodeThreads(1)
    for number in range(3):
        decoders.submit(work, number)
    assert [done.get(timeout=TIMEOUT_S) for _ in range(3)] == [(n, DECODE) for n in range(3)]
    decoders.shutdown()


def test_an_error_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    done: queue.SimpleQueue[float] = queue.SimpleQueue()
    decoders = DecodeThreads(1)
    for divisor in (0, 1):
        decoders.submit(lambda by: done.put(1 / by), divisor)
    assert done.get(timeout=TIMEOUT_S) == 1.0
    decoders.shutdown()
    assert 'goes on after an error' in caplog.text


def test_what_has_not_begun_is_dropped_at_the_end_and_nothing_more_is_taken() -> None:
    begun, gate, done = threading.Event(), threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.set()
        assert gate.wait(TIMEOUT_S)
        done.append(number)

    decoders = DecodeThreads(1)
    for number in range(3):
        decoders.submit(work, number)
    assert begun.wait(TIMEOUT_S)
    decoders.shutdown(wait=False, cancel_futures=True)
    gate.set()
    decoders.shutdown(cancel_futures=True)
    assert done == [0]
    with pytest.raises(RuntimeError, match='shut down'):
        decoders.submit(work, 3)
