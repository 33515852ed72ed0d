# SPDX-License-Identifier: Apache-2.0
"""What a command shows of the processes that it starts."""

import io

from rich.console import Console

from xinfer_ros.cli.live import LogLines

PAGE = '[xinfer_server] [xinfer_ros.observe.http_server] INFO: live page at http://127.0.0.1:8320/'
TAKEN = '[xinfer_server] [xinfer_ros.observe.http_server] WARNING: no live page and no metrics'
LINES = (
    PAGE,
    TAKEN,
    '[xinfer_server] [INFO] [1.0] [fleet.xinfer_server]: robot r0 registered',
    '[robots-1] [ERROR] [1.0] [r0.executor]: the control thread stalls',
)


def test_faults_are_shown_and_where_the_live_page_is_or_why_there_is_none() -> None:
    out = io.StringIO()
    log = LogLines(Console(file=out), verbose=False)
    for line in LINES:
        log.take(line)
    assert out.getvalue().splitlines() == [LINES[0], LINES[1], LINES[3]]


def test_everything_is_shown_on_demand_and_after_a_failure() -> None:
    verbose, failed = io.StringIO(), io.StringIO()
    log, kept = LogLines(Console(file=verbose), True), LogLines(Console(file=failed), False)
    for line in LINES:
        log.take(line)
        kept.take(line)
    failed.truncate(failed.seek(0))
    kept.print_kept()
    assert verbose.getvalue().splitlines() == failed.getvalue().splitlines() == list(LINES)
