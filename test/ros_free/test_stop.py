# SPDX-License-Identifier: Apache-2.0
"""A process that is told to end does first what must be done, whatever its threads wait for."""

import signal
import subprocess
import sys
import threading

import pytest

from xinfer_ros.ros.stop import Stop

PROGRAM = """
import sys, threading
from xinfer_ros.ros.stop import Stop, stop_at_exceptions, stop_at_signals

stop, ended = Stop(), threading.Lock()
stop_at_signals(stop)
stop_at_exceptions(stop)
stop.at_request(lambda: (print('safe', flush=True), ended.release()))
ended.acquire()
print('up', flush=True)
if sys.argv[1] == 'raise':
    threading.Thread(target=lambda: 1 / 0, name='victim').start()
ended.acquire()  # in C, as rclpy waits: no Python code of the main thread runs
sys.exit(stop.code)
"""


def _program(argument: str) -> 'subprocess.Popen[str]':
    process = subprocess.Popen(
        [sys.executable, '-c', PROGRAM, argument],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'up\n'
    return process


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signal_is_answered_from_another_thread_and_ends_well(number: int) -> None:
    """Also seen (lerobot 2621, rclpy 1166)."""
    process = _program('wait')
    process.send_signal(number)
    output, errors = process.communicate(timeout=20)
    assert (output, errors, process.returncode) == ('safe\n', '', 0)


def test_exception_in_any_thread_is_told_and_ends_with_code_1() -> None:
    process = _program('raise')
    output, errors = process.communicate(timeout=20)
    assert (output, process.returncode) == ('safe\n', 1)
    assert 'victim' in errors
    assert 'ZeroDivisionError' in errors


def test_last_actions_are_done_once_even_if_one_fails() -> None:
    stop, done = Stop(), []
    stop.at_request(lambda: done.append('a'))
    stop.at_request(lambda: done.remove('none such'))
    stop.at_request(lambda: done.append('b'))
    stop.request(1)
    stop.request()
    assert done == ['a', 'b']
    assert stop.is_requested
    assert stop.code == 1


def test_second_wish_does_not_overtake_the_last_actions_of_the_first() -> None:
    """Else the topics would be removed while the safe output is on its way to them."""
    stop, begun, may_end = Stop(), threading.Event(), threading.Event()

    def last_word() -> None:
        begun.set()
        may_end.wait()

    stop.at_request(last_word)
    first = threading.Thread(target=stop.request)
    first.start()
    begun.wait()
    stop.request(1)
    assert not stop.is_requested
    may_end.set()
    first.join()
    assert stop.is_requested
    assert stop.code == 1
