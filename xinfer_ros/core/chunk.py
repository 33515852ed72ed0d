# SPDX-License-Identifier: Apache-2.0
"""Action chunks: the rows, whom they answer, and the checks they pass at both ends of the wire."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from xinfer_ros.errors import Reason, Rejected

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimes:
    """Time that an answer spent in each part of the server [ns]; see msg/ActionChunk.msg."""

    decode_ns: int = 0
    queue_ns: int = 0
    vit_ns: int = 0
    prefill_ns: int = 0
    action_ns: int = 0
    server_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    The answer to one observation; fields as in msg/ActionChunk.msg.

    :param rows: ``(H, num_joints)`` float32 in ``joint_names`` order; no rows unless OK
    :param frozen_steps: first rows that repeat the leftover exactly [steps]
    :param degraded: the commitment has reached or passed what the model honours
    :param ask_after_ns: pace: how long after the arrival of the observation the server wants the
        next one, 0: as the robot likes [ns]
    """

    session: int
    episode: int
    request_id: int
    epoch: int
    reason: Reason
    detail: str = ''
    start_step: int = 0
    joint_names: tuple[str, ...] = ()
    rows: Rows = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    frozen_steps: int = 0
    degraded: bool = False
    keyframe_spacing_ns: int = 0
    times: ServerTimes = ServerTimes()
    ask_after_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """
    How much of what a robot was promised of its next chunk is kept.

    :param frozen_steps: rows of the leftover that the new chunk repeats exactly
    :param degraded: whether the limit of the model is reached: what comes later is not covered
    """

    frozen_steps: int
    degraded: bool

    @classmethod
    def of(
        cls, commitment_steps: int, leftover_steps: int, max_commitment_steps: int
    ) -> 'Commitment':
        """
        Return what becomes of a commitment; no count is ever refused here.

        :param commitment_steps: ``d`` of the observation [steps]
        :param leftover_steps: rows of its leftover; more was never promised [steps]
        :param max_commitment_steps: the most that the model honours [steps]
        """
        promised = max(0, min(commitment_steps, leftover_steps))
        return cls(
            frozen_steps=min(promised, max_commitment_steps),
            degraded=promised > 0 and max_commitment_steps <= promised,
        )


def all_finite(values: Rows) -> bool:
    """
    Return whether no value is infinite or no number, at a third of the usual way's cost.

    A sum of squares is finite if every value is; one that overflows says nothing.
    """
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())


def check_rows(rows: Rows, num_joints: int) -> None:
    """
    Refuse rows that must never reach a motor.

    :param rows: ``(H, num_joints)`` float32
    :param num_joints: columns that the receiver expects
    :raises Rejected: REJECTED_ROWS if there is no row or a value is not finite,
        REJECTED_COLUMNS if the width is another one
    """
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise Rejected(Reason.REJECTED_ROWS, f'a chunk needs at least one row, got {rows.shape}')
    if rows.shape[1] != num_joints:
        raise Rejected(
            Reason.REJECTED_COLUMNS,
            f'the chunk has {rows.shape[1]} columns, {num_joints} joints are expected; '
            'it is neither cut nor padded',
        )
    if not all_finite(rows):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise Rejected(
            Reason.REJECTED_ROWS,
            f'row {row}, column {column} is {rows[row, column]}; every value must be finite',
        )


def columns_by_name(wanted: Sequence[str], given: Sequence[str]) -> npt.NDArray[np.intp]:
    """
    Return where each wanted joint stands among the given ones; positions never decide.

    :param wanted: joint names in the receiver's order
    :param given: joint names in the sender's order
    :returns: ``(len(wanted),)`` column of ``given`` for each wanted joint
    :raises Rejected: REJECTED_COLUMNS if the two sets differ or a name stands twice
    """
    position = {name: column for column, name in enumerate(given)}
    if len(position) != len(given) or len(wanted) != len(given) or set(wanted) != set(given):
        raise Rejected(
            Reason.REJECTED_COLUMNS,
            f'joint names differ: expected {", ".join(wanted)}; received {", ".join(given)}',
        )
    return np.array([position[name] for name in wanted], dtype=np.intp)
