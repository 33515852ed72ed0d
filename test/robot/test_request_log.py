# SPDX-License-Identifier: Apache-2.0
"""The log of emulated robots' requests, and its file."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.robot.request_log import PARTS, RequestLog


def log(*sent_ns: int, robot: int = 0) -> RequestLog:
    """Return requests that were answered a nanosecond later."""
    sent = np.array(sent_ns, np.int64)
    return RequestLog(
        robot=np.full(len(sent), robot),
        due_ns=sent,
        sent_ns=sent,
        received_ns=sent + 1,
        budget_ns=np.full(len(sent), 9),
        reason=np.zeros(len(sent), np.int64),
        times_ns=np.zeros((len(sent), len(PARTS)), np.int64),
        wrong=np.array([robot]),
        lag_ns=np.array([5, 6]),
    )


def test_log_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / 'log.npz'
    log(1, 2, 3).save(path)
    found = RequestLog.load(path)
    for each in fields(RequestLog):
        assert (getattr(found, each.name) == getattr(log(1, 2, 3), each.name)).all()


@pytest.mark.parametrize('content', [b'', b'no archive at all', b'PK\x03\x04 torn'])
def test_file_that_is_no_log_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'log.npz'
    path.write_bytes(content)
    with pytest.raises(ConfigError, match='no log of requests'):
        RequestLog.load(path)


def test_logs_of_processes_are_joined() -> None:
    found = RequestLog.joined([log(1, 2), log(3, robot=1)])
    assert found.robot.tolist() == [0, 0, 1]
    assert found.wrong.tolist() == [0, 1]
    assert found.lag_ns.tolist() == [5, 6, 5, 6]


def test_window_holds_what_was_sent_in_it() -> None:
    found = log(1, 2, 3, 4).between(2, 4)
    assert found.sent_ns.tolist() == [2, 3]
    assert len(found.lag_ns) == 2
