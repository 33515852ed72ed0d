# SPDX-License-Identifier: Apache-2.0
"""CPU time of a server's processes, decoding told apart."""

import os

from xinfer_ros.fleet.cpu_meter import CpuReading, read_cpu

NOBODY = 2**22 + 1  # larger than any process id


def test_decoding_is_told_apart() -> None:
    before = CpuReading(total_s=10.0, threads_s={'decode_0': 1.0, 'engine': 4.0})
    after = CpuReading(total_s=16.0, threads_s={'decode_0': 2.0, 'decode_1': 1.5, 'engine': 6.0})
    used = after.since(before)
    assert (used.total_s, used.decode_s) == (3.5, 2.5)


def test_without_such_threads_nothing_is_told_apart() -> None:
    used = CpuReading(total_s=3.0, threads_s={}).since(CpuReading(total_s=1.0, threads_s={}))
    assert (used.total_s, used.decode_s) == (2.0, None)


def test_this_process_has_used_some() -> None:
    found = read_cpu([os.getpid(), NOBODY])
    assert found is not None
    assert found.total_s > 0.0
    assert found.threads_s


def test_processes_that_are_gone_have_no_reading() -> None:
    assert read_cpu([NOBODY]) is None
    assert read_cpu([]) is None
