# SPDX-License-Identifier: Apache-2.0
"""How the rows of a new chunk and those of older ones become the rows that are played."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.chunk import Rows

MAX_CHUNKS = 64


class MergeRule(Protocol):
    """Makes the rows that are played; called under the queue's lock."""

    def merged(self, start_step: int, rows: Rows, row: int) -> Rows:
        """
        Return what would be played from now on; it may be a view of ``rows``.

        :param start_step: step of the chunk's row 0 [steps]
        :param rows: ``(H, num_joints)`` float32
        :param row: of the chunk, the handoff: the one for the next step
        :returns: ``(H - row, num_joints)`` float32
        """
        ...

    def take(self, start_step: int, rows: Rows) -> None:
        """Keep a chunk that has taken over."""
        ...

    def clear(self) -> None:
        """Forget older chunks."""
        ...


class Replacement:
    """The newest chunk alone: from the handoff on nothing of the older one is played."""

    def merged(self, start_step: int, rows: Rows, row: int) -> Rows:
        """Return the rows from the handoff on."""
        return rows[row:]

    def take(self, start_step: int, rows: Rows) -> None:
        """Do nothing: no older chunk is kept."""

    def clear(self) -> None:
        """Do nothing: no older chunk is kept."""


class TemporalEnsemble:
    """
    The mean of all chunks that cover a step, the ``i``-th oldest weighing ``exp(-decay i)``.

    Discrete joints are those of the newest chunk: half a gripper command is none.
    Source: temporal ensembling of Action Chunking with Transformers (ACT).

    :param decay: 0: all alike; the larger, the less a newer chunk counts
    :param discrete: ``(num_joints,)`` bool
    """

    def __init__(self, decay: float, discrete: npt.NDArray[np.bool_]) -> None:
        self._decay, self._discrete = decay, discrete
        self._chunks: list[tuple[int, Rows]] = []  # start step and rows, oldest first

    def merged(self, start_step: int, rows: Rows, row: int) -> Rows:
        """Return the weighted mean of every step from the handoff to the end of the newest."""
        step, num_rows = start_step + row, len(rows) - row
        total = np.zeros((num_rows, rows.shape[1]), np.float64)
        weights = np.zeros((num_rows, 1), np.float64)
        rank = np.zeros((num_rows, 1), np.float64)  # how many older chunks cover the step
        for start, chunk in (*self._chunks, (start_step, rows)):
            covered = chunk[step - start :][:num_rows]
            part = slice(0, len(covered))
            weight = np.exp(-self._decay * rank[part])
            total[part] += weight * covered
            weights[part] += weight
            rank[part] += 1.0
        mean: Rows = (total / weights).astype(np.float32)
        mean[:, self._discrete] = rows[row:, self._discrete]
        return mean

    def take(self, start_step: int, rows: Rows) -> None:
        """Keep a chunk, and those older ones that reach beyond its start."""
        alive = [c for c in self._chunks if c[0] + len(c[1]) > start_step]
        self._chunks = [*alive, (start_step, rows)][-MAX_CHUNKS:]

    def clear(self) -> None:
        """Forget every chunk."""
        self._chunks.clear()
