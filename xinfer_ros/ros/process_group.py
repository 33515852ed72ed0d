# SPDX-License-Identifier: Apache-2.0
"""Starts a node list as processes: a stand-in where there is no ``ros2 launch``."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xinfer_ros.ros.node_list import NodeSpec

END_S = ((signal.SIGINT, 6.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0))
RESPAWN_DELAY_S = 0.5
PARENT_VARIABLE = 'XINFER_PARENT_PID'  # a node process ends when this process does


@dataclass(slots=True)
class _Running:
    spec: NodeSpec
    process: 'subprocess.Popen[str]'
    started_s: float


class ProcessGroup:
    """
    The processes of a node list.

    :param specs: what to start
    :param output: takes each line of a process, with its name in front; from several threads
    """

    def __init__(self, specs: Sequence[NodeSpec], output: Callable[[str], None]) -> None:
        self._output = output
        self._running: dict[str, _Running] = {}
        self._restart_at_s: dict[str, tuple[NodeSpec, float]] = {}
        for index, spec in enumerate(specs):
            self._start(spec, f'{spec.executable}-{index}')

    def _start(self, spec: NodeSpec, name: str) -> None:
        env = dict(os.environ, PYTHONUNBUFFERED='1', **{PARENT_VARIABLE: str(os.getpid())})
        process = subprocess.Popen(
            command(spec),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            env=env,
            start_new_session=True,
        )
        self._running[name] = _Running(spec, process, time.monotonic())
        threading.Thread(target=self._pump, args=(name, process), daemon=True).start()

    def _pump(self, name: str, process: 'subprocess.Popen[str]') -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._output(f'[{name}] {line.rstrip()}')

    def pid(self, executable: str) -> int:
        """Return the process id of the first process of an executable, 0 while there is none."""
        running = self._running.values()
        return next((r.process.pid for r in running if r.spec.executable == executable), 0)

    def check(self) -> str | None:
        """
        Start again what may be; call it often.

        :returns: what is wrong if a process has ended that must not, None otherwise
        """
        for name, (spec, when_s) in list(self._restart_at_s.items()):
            if time.monotonic() >= when_s:
                del self._restart_at_s[name]
                self._start(spec, name)
                self._output(f'[{name}] started again')
        for name, running in list(self._running.items()):
            code = running.process.poll()
            if code is None:
                continue
            del self._running[name]
            self._output(f'[{name}] ended with exit code {code}')
            settings_are_wrong = code == 2
            if not running.spec.respawn or settings_are_wrong:
                return f'{name} ended with exit code {code}'
            self._restart_at_s[name] = (running.spec, time.monotonic() + RESPAWN_DELAY_S)
        return None

    def close(self) -> None:
        """End every process: SIGINT, then SIGTERM, then SIGKILL."""
        processes = [running.process for running in self._running.values()]
        for number, wait_s in END_S:
            for process in processes:
                if process.poll() is None:
                    process.send_signal(number)
            end_s = time.monotonic() + wait_s
            for process in processes:
                try:
                    process.wait(max(0.0, end_s - time.monotonic()))
                except subprocess.TimeoutExpired:
                    continue


def command(spec: NodeSpec) -> list[str]:
    """Return the command line of a node list's entry."""
    line = [sys.executable, '-m', f'xinfer_ros.ros.{spec.executable}_main', *spec.arguments]
    line.append('--ros-args')
    if spec.name:
        line += ['-r', f'__node:={spec.name}', '-r', f'__ns:={spec.namespace}']
    for path in spec.files:
        line += ['--params-file', str(path)]
    for name, value in spec.parameters.items():
        text = json.dumps(value, ensure_ascii=False)  # every JSON text is YAML
        line += ['-p', f'{name}:={text}']
    return line
