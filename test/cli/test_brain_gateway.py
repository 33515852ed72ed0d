# SPDX-License-Identifier: Apache-2.0
"""``xinfer brain gateway`` and ``xinfer brain scripted``."""

import signal
import subprocess
import sys
import urllib.request

import pytest

from xinfer_ros.cli import main


def test_a_wrong_setting_is_told_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(['brain', 'gateway', '--set', 'controler=open']) == 2
    assert 'did you mean controller?' in capsys.readouterr().err
    assert main(['brain', 'gateway', '--upstream', 'http://host:1/v1']) == 2
    assert 'without /v1' in capsys.readouterr().err
    wrong = 'controller_settings=admit_shar=1'
    assert main(['brain', 'gateway', '--port', '0', '--set', wrong]) == 2


def test_both_serve_until_they_are_interrupted() -> None:
    for command, mark, path in (
        (['scripted', '--port', '0'], 'http://', '/v1/models'),
        (['gateway', '--port', '0'], 'http://', '/health'),
    ):
        process = subprocess.Popen(
            [sys.executable, '-m', 'xinfer_ros.cli', 'brain', *command],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        base = mark + line.partition(mark)[2].split('/')[0]
        with urllib.request.urlopen(base + path, timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stdout.close()
