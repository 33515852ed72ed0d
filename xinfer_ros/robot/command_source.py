# SPDX-License-Identifier: Apache-2.0
"""What a robot is commanded at each tick: the next row, what holds, or nothing."""

from dataclasses import replace

from xinfer_ros.core.chunk import Rows
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.hold import Hold, SafeOutput
from xinfer_ros.robot.watchdog import ChunkWatchdog

NO_CHUNK = 'no chunk'


class CommandSource:
    """
    Chooses between rows and hold, and leads a robot over stalls and stops.

    ``tick`` and ``begin_episode`` belong to the control thread, the rest to any; nothing waits.

    :param executor: gives the rows
    :param hold: commands while there is none
    :param watchdog: fed with every accepted chunk
    :param overrun_skip_steps: rows left out at most after a late tick; a longer stall is a pause,
        after which nothing is left out [steps]
    """

    def __init__(
        self, executor: ChunkExecutor, hold: Hold, watchdog: ChunkWatchdog, overrun_skip_steps: int
    ) -> None:
        self._executor, self._hold, self._watchdog = executor, hold, watchdog
        self._overrun_skip_steps = overrun_skip_steps
        self._overruns = 0
        self._is_paused = False
        self._is_led_away = False
        self.why_hold = NO_CHUNK
        self.is_stopped = True

    def begin_episode(self) -> None:
        """Start over: nothing of what was commanded or queued is commanded again."""
        self._hold.forget()
        self._watchdog.rest()
        self._executor.start_episode()
        self._is_led_away = False
        self.why_hold = NO_CHUNK
        self.is_stopped = False

    def chunk_accepted(self, now_ns: int) -> None:
        """Note that a chunk was accepted, steady clock [ns]."""
        self._watchdog.feed(now_ns)

    def tick(self, now_ns: int, missed: int = 0, trouble: str = '') -> Rows | None:
        """
        Return what is commanded at this tick, ``(num_joints,)``; None: nothing.

        :param now_ns: steady clock [ns]
        :param missed: ticks that were missed since the last one
        :param trouble: why the robot must hold although there may be rows
        """
        self._overruns += missed
        if self.is_stopped:
            return None
        if self._is_led_away:  # by another thread, while this one stalled: where is it now?
            self._is_led_away = False
            self._hold.forget()
            self._executor.start_episode()
        trouble = trouble or self._watchdog.trouble(now_ns)
        if trouble:
            return self._pause(trouble)
        self._is_paused = False
        skip_steps = missed if missed <= self._overrun_skip_steps else 0
        row = self._executor.tick(skip_steps=skip_steps)
        self.why_hold = '' if row is not None else NO_CHUNK
        if row is None:
            return self._held()
        self._hold.executed(row.values)
        return row.values

    def _pause(self, trouble: str) -> Rows | None:
        """Hold without consuming a row; what follows a way to a safe pose starts from there."""
        if self._hold.moves and not self._is_paused:
            self._executor.start_episode()
        self._is_paused, self.why_hold = True, trouble
        if self._hold.holds:
            self._executor.hold_tick()
        return self._held()

    def _held(self) -> Rows | None:
        held = self._hold.step()
        if held is not None and self._hold.moves:
            self._executor.led_to(held)
        return held

    def interrupt(self) -> SafeOutput | None:
        """Return what is commanded in place of a control thread that stalls; it goes on later."""
        output = None if self.is_stopped else self._hold.safe_output()
        self._is_led_away = self._hold.moves and output is not None
        return output

    def stop(self) -> SafeOutput | None:
        """Return the last command; none follows until an episode begins."""
        if self.is_stopped:
            return None
        self.is_stopped = True
        self.why_hold = 'stopped'
        return self._hold.safe_output()

    def report(self) -> RobotReport:
        """Return the executor's report with what was commanded."""
        report, why_hold = self._executor.report(), self.why_hold
        if report.phase is ExecutorPhase.REGISTERING and why_hold == NO_CHUNK:
            why_hold = self._executor.session.refusal or why_hold
        return replace(
            report, phase=self._phase(report.phase), overruns=self._overruns, hold=why_hold
        )

    def _phase(self, phase: ExecutorPhase) -> ExecutorPhase:
        if self.is_stopped:
            return ExecutorPhase.STOPPED
        if phase is ExecutorPhase.RUNNING and self.why_hold not in ('', NO_CHUNK):
            return ExecutorPhase.HOLDING
        return phase
