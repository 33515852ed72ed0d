# SPDX-License-Identifier: Apache-2.0
"""``xinfer brain gateway`` and ``xinfer brain scripted``."""

import signal
import socket
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
    wrong = 'controller_settings=start_share=0.5,admit_shar=1'
    assert main(['brain', 'gateway', '--port', '0', '--set', wrong]) == 2
    assert 'did you mean admit_share?' in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in ('scripted', 'gateway'):
            assert main(['brain', command, '--port', port]) == 2
            assert f'{port}: ' in capsys.readouterr().err


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
