# SPDX-License-Identifier: Apache-2.0
"""Simulations that need nothing of each other, run on all cores of this machine."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Generic, TypeVar

from xinfer_ros.errors import XinferError

Task = TypeVar('Task')
Result = TypeVar('Result')
Pool = TypeVar('Pool', bound='TaskPool[Any, Any]')


class TaskPool(Generic[Task, Result]):
    """
    Runs tasks in processes of its own; used as a context.

    :param work: what is done with a task; a function of a module
    :param jobs: number of processes, 1 for none but this one, None for one a core
    """

    def __init__(self, work: Callable[[Task], Result], jobs: int | None = None) -> None:
        self._work = work
        self._jobs = jobs or len(os.sched_getaffinity(0))
        self._executor: ProcessPoolExecutor | None = None
        self._others = set(multiprocessing.active_children())

    def __enter__(self: Pool) -> Pool:
        """Return this pool."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, at once if something went wrong."""
        if self._executor is None:
            return
        self._executor.shutdown(wait=error is None, cancel_futures=True)
        if error is not None:
            for process in set(multiprocessing.active_children()) - self._others:
                process.terminate()

    def run(
        self, tasks: Sequence[Task], done: Callable[[Result], None] | None = None
    ) -> list[Result]:
        """
        Return the results of tasks, in the order of the tasks.

        :param done: called with each result when it is there, in any order
        :raises ConfigError: if a task cannot be simulated as asked
        :raises XinferError: if a process has died
        """
        tell = done or (lambda result: None)
        if self._jobs == 1 or (len(tasks) == 1 and self._executor is None):
            results = []
            for task in tasks:
                results.append(self._work(task))
                tell(results[-1])
            return results
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self._jobs, multiprocessing.get_context('spawn'), _leave_ctrl_c_to_the_parent
            )
        futures = [self._executor.submit(self._work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                tell(future.result())
        except BrokenProcessPool as error:
            raise XinferError(
                'a process that simulates has died, perhaps for want of memory; try --jobs 1'
            ) from error
        return [future.result() for future in futures]


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
