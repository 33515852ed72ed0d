# SPDX-License-Identifier: Apache-2.0
"""Runs the command xinfer in this process."""

from pathlib import Path

from xinfer_ros.cli import main


def run(*arguments: str | Path) -> int:
    """Return the exit code of ``xinfer ARGUMENTS``."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse
        return int(end.code or 0)
