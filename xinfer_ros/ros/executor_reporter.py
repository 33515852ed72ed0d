# SPDX-License-Identifier: Apache-2.0
"""Says how an executor fares: its report twice a second, diagnostics once."""

from diagnostic_msgs.msg import DiagnosticArray

from xinfer_ros.core.clock import Clock
from xinfer_ros.core.health import Level, Verdict
from xinfer_ros.core.metrics import RobotReport
from xinfer_ros.core.repeats import RepeatLimit
from xinfer_ros.msg import ExecutorState
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.command_source import CommandSource
from xinfer_ros.robot.health import Health
from xinfer_ros.ros import convert, qos
from xinfer_ros.ros.brain_watch import BrainWatch
from xinfer_ros.ros.diagnostics import executor_diagnostics
from xinfer_ros.ros.entities import Entities
from xinfer_ros.ros.sensors import Sensors
from xinfer_ros.ros.server_link import ServerLink

REPORT_S = 0.5
REPEAT_NS = 30_000_000_000  # a trouble that stays is logged again
DIAGNOSE_REPORTS = 2  # diagnostics with every second report: asking the graph takes its time


class ExecutorReporter:
    """
    Publishes the report and diagnostics; rclpy's thread, but for a stall, which another tells.

    ``notice`` says why the robot can't ask at present; empty if it can.

    :param entities: makes publishers and the timer
    :param clock: the steady clock
    :param link: to the server
    :param sensors: of the robot
    :param brain: what is seen of its LLM brain
    """

    def __init__(
        self,
        entities: Entities,
        clock: Clock,
        link: ServerLink,
        sensors: Sensors,
        brain: BrainWatch,
    ) -> None:
        self._node, self._clock = entities.node, clock
        self._link, self._sensors, self._brain = link, sensors, brain
        self._states = entities.create_publisher(ExecutorState, 'executor_state', qos.CHUNK)
        self._diagnostics = entities.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._health, self._repeats = Health(), RepeatLimit()
        self._executor: ChunkExecutor | None = None
        self._source: CommandSource | None = None
        self._stalled_ns = self._stalls = self._reports = 0
        self._told: Verdict | None = None
        self._told_ns = 0
        self.notice = 'waiting for the first joint state'
        entities.create_timer(REPORT_S, self.publish)

    def bind(self, executor: ChunkExecutor, source: CommandSource) -> None:
        """Report of an executor from now on."""
        self._executor, self._source = executor, source

    def stalled(self, late_ns: int, *, is_safe: bool) -> None:
        """
        Say at once that the control thread is late [ns].

        :param is_safe: whether there was anything to be made safe
        """
        self._stalled_ns, self._stalls = late_ns, self._stalls + 1
        done = 'the safe output is published' if is_safe else 'nothing is commanded'
        text = f'the control thread stalls, {late_ns / 1e9:.2f} s late: {done} until it goes on'
        words = self._repeats.words(done, text, self._clock.now_ns())
        if words is not None:
            self._node.get_logger().error(words)
        self.publish()

    def recovered(self) -> None:
        """Note that the control thread ticks."""
        self._stalled_ns = 0

    def publish(self) -> None:
        """Publish the report of this moment, and the diagnostics if it is their turn."""
        executor, source = self._executor, self._source
        refusal, report = '', RobotReport()
        if executor is not None and source is not None:
            report, refusal = source.report(), executor.last_refusal
            report.brain = self._brain.word(self._clock.now_ns())
            self._states.publish(convert.from_report(report))
        if self._reports % DIAGNOSE_REPORTS == 0 or self._stalled_ns:
            self._diagnose(report, refusal)
        self._reports += 1

    def _tell(self, verdict: Verdict, now_ns: int) -> None:
        """Log how the robot is when that changes, and a trouble now and then while it stays."""
        told = self._told
        same = told is not None and _kind(verdict) == _kind(told)
        if same and (verdict.level is Level.OK or now_ns - self._told_ns < REPEAT_NS):
            return
        self._told, self._told_ns = verdict, now_ns
        logger = self._node.get_logger()
        if verdict.level is Level.OK:
            logger.info(verdict.text)
        else:
            logger.warning(verdict.text)

    def _diagnose(self, report: RobotReport, refusal: str) -> None:
        now_ns = self._clock.now_ns()
        verdict = self._health.judge(
            report,
            now_ns,
            notice=(self._link.notice if self._executor is not None else '') or self.notice,
            refusal=refusal,
            stalled_ns=self._stalled_ns,
        )
        self._tell(verdict, now_ns)
        mismatched = self._sensors.mismatches() + self._link.mismatches()
        self._diagnostics.publish(
            executor_diagnostics(self._node, report, verdict, self._stalls, mismatched)
        )


def _kind(verdict: Verdict) -> tuple[Level, str]:
    """Return what tells a trouble from others; figures stand at the end of texts."""
    return verdict.level, verdict.text[:24]
