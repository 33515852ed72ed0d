# SPDX-License-Identifier: Apache-2.0
"""What errors of predictions come to: size, sign, and each request counted once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.audit import Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """
    The errors of one stage, or of all. Times in ms; an error is predicted less true.

    :param stage: name of the stage, or ``all``
    :param units: units that were predicted
    :param predictions: predictions, several a unit
    :param stage_ms: mean time of the units, from start to end
    :param mae_ms: mean absolute error
    :param mae_share: the same over ``stage_ms``
    :param bias_ms: mean error: more than 0 if units end sooner than predicted
    :param over_share: share of predictions that were too long
    :param over_ms: mean error of those, 0 if there are none
    :param under_share: share of predictions that were too short
    :param under_ms: mean error of those, less than 0; 0 if there are none
    :param requests: requests that took part, None if they are not known
    :param request_mae_ms: request-balanced: mean over requests of each one's mean absolute error,
        so that one that is predicted often, since much else happens beside it, counts no more
        than any other
    :param request_bias_ms: mean over requests of each one's mean error
    """

    stage: str
    units: int
    predictions: int
    stage_ms: float
    mae_ms: float
    mae_share: float
    bias_ms: float
    over_share: float
    over_ms: float
    under_share: float
    under_ms: float
    requests: int | None
    request_mae_ms: float | None
    request_bias_ms: float | None


def summaries(audit: Audit, members: npt.NDArray[np.int64] | None) -> list[ErrorSummary]:
    """
    Return the summary of each stage that was predicted, and that of all.

    :param members: rows unit, request, robot, shape ``(k, 3)``; None if they are not known
    """
    found = []
    for stage in Stage:
        chosen = audit.stage == stage
        if chosen.any():
            found.append(_summary(stage.name, audit, chosen, members))
    if found:
        found.append(_summary('all', audit, np.ones(len(audit.stage), np.bool_), members))
    return found


def _summary(
    name: str,
    audit: Audit,
    chosen: npt.NDArray[np.bool_],
    members: npt.NDArray[np.int64] | None,
) -> ErrorSummary:
    errors, unit = audit.error_ms[chosen], audit.unit[chosen]
    units, first = np.unique(unit, return_index=True)
    stage_ms = float(audit.stage_ms[chosen][first].mean())
    over, under = errors[errors > 0.0], errors[errors < 0.0]
    mae_ms = float(np.abs(errors).mean())
    balanced = None if members is None else _balanced(errors, unit, members)
    return ErrorSummary(
        stage=name,
        units=len(units),
        predictions=len(errors),
        stage_ms=stage_ms,
        mae_ms=mae_ms,
        mae_share=mae_ms / stage_ms if stage_ms > 0.0 else 0.0,
        bias_ms=float(errors.mean()),
        over_share=len(over) / len(errors),
        over_ms=float(over.mean()) if len(over) else 0.0,
        under_share=len(under) / len(errors),
        under_ms=float(under.mean()) if len(under) else 0.0,
        requests=None if balanced is None else len(balanced),
        request_mae_ms=None if balanced is None else float(balanced[:, 0].mean()),
        request_bias_ms=None if balanced is None else float(balanced[:, 1].mean()),
    )


def _balanced(
    errors: npt.NDArray[np.float64],
    unit: npt.NDArray[np.int64],
    members: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64] | None:
    """Return mean absolute error and mean error of each request; None if none is known."""
    ids, place = np.unique(unit, return_inverse=True)
    # of each unit the number and the sums of its predictions, which all of its requests share
    count = np.bincount(place)
    absolute, signed = (np.bincount(place, weights=w) for w in (np.abs(errors), errors))
    known = members[np.isin(members[:, 0], ids)]
    if not len(known):
        return None
    of_unit = np.searchsorted(ids, known[:, 0])
    _, request = np.unique(known[:, 1], return_inverse=True)
    counts = np.bincount(request, weights=count[of_unit])
    sums = [np.bincount(request, weights=values[of_unit]) for values in (absolute, signed)]
    return np.stack(sums, axis=1) / counts[:, None]
