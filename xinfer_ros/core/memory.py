# SPDX-License-Identifier: Apache-2.0
"""The memory of a process that answers within milliseconds."""

import ctypes
import gc
from contextlib import suppress

YOUNG = 10_000  # objects between two looks at the youngest; Python's 700 look at every request
# of malloc.h, and what it takes: glibc returns larger blocks to the system at once, and every page
# of the next raw picture is a fault then
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT_BYTES = 1 << 27, 1 << 25


def settle() -> None:
    """
    Leave alone whatever there is by now, modules, settings, a model, and keep what is freed.

    A full collection looks at every object that is tracked; that of a loaded process takes tens of
    milliseconds, in which nobody is answered. Later objects are collected as ever. To be called
    when a process has loaded all, before it serves.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)
    with suppress(AttributeError):  # a libc without it
        libc = ctypes.CDLL(None)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
