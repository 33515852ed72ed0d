# SPDX-License-Identifier: Apache-2.0
"""A run tells what a calibration must know to replay it."""

import numpy as np
import pytest

from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.run_record import Change, RecordedRun, RunFacts

from .devices import sharing_device


def test_run_of_batches_that_a_calibration_does_not_know_is_refused() -> None:
    device = sharing_device(batch_work=((1.0, 1.5), (1.0,), (1.0,)))
    run = RecordedRun(
        transitions=np.array([(0, 1, Stage.VIT, 2, Change.STARTED)], dtype=np.int64),
        members=np.array([(1, 1, 1), (1, 2, 2)], dtype=np.int64),
        from_ns=0,
        calibration=device,
        facts=RunFacts(policy='foresight', model='tiny', date='2026-01-31'),
    )
    run.check_sizes(device)
    with pytest.raises(
        ConfigError, match='batches of 2 in VIT, calibration sharing knows up to 1'
    ):
        run.check_sizes(sharing_device())
