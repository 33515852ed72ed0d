# SPDX-License-Identifier: Apache-2.0
"""CPU time of a server's processes, decoding told apart."""

import os

from xinfer_ros.fleet.cpu_meter import CpuReading, read_cpu

NOBODY = 2**22 + 1  # larger than any process id


def reading(
    processes_s: dict[int, float], threads_s: dict[tuple[int, str], float] | None = None
) -> CpuReading:
    """Return a reading."""
    return CpuReading(processes_s=processes_s, threads_s=threads_s or {})


def test_decoding_is_told_apart() -> None:
    before = reading({1: 10.0}, {(2, 'decode_0'): 1.0, (3, 'engine'): 4.0})
    after = reading({1: 16.0}, {(2, 'decode_0'): 2.0, (4, 'decode_1'): 1.5, (3, 'engine'): 6.0})
    used = after.since(before)
    assert (used.total_s, used.decode_s) == (3.5, 2.5)


def test_process_that_has_ended_takes_nothing_from_the_others() -> None:
    """An engine that is restarted in a round; its time once made the sum less than nothing."""
    before = reading({1: 10.0, 2: 50.0}, {(7, 'decode_0'): 5.0})
    used = reading({1: 11.0, 3: 0.5}, {(8, 'decode_0'): 0.25}).since(before)
    assert (used.total_s, used.decode_s) == (1.25, 0.25)


def test_without_such_threads_nothing_is_told_apart() -> None:
    used = reading({1: 3.0}).since(reading({1: 1.0}))
    assert (used.total_s, used.decode_s) == (2.0, None)


def test_this_process_has_used_some() -> None:
    found = read_cpu([os.getpid(), NOBODY])
    assert found is not None
    assert found.processes_s[os.getpid()] > 0.0
    assert found.threads_s


def test_processes_that_are_gone_have_no_reading() -> None:
    assert read_cpu([NOBODY]) is None
    assert read_cpu([]) is None
