# SPDX-License-Identifier: Apache-2.0
"""What a server adds to the stages: measured by one robot that asks a real front end."""

import queue
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.clock import Clock
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.engine.bare_server import start_server
from xinfer_ros.engine.sample_robot import SampleRobot
from xinfer_ros.errors import ModelError, Reason

BUDGET_NS = 60_000_000_000  # never late: what is measured is how long it takes
PERIOD_NS = 10_000_000
WARM_UP = 5  # requests that do not count


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerShare:
    """
    The time that a request spends outside of lanes and queues.

    :param front_end_ms: ``f``, from its arrival until it is registered [ms]
    :param output_ms: ``h_out``, from the end of its last stage until the answer leaves [ms]
    """

    front_end_ms: float
    output_ms: float

    @classmethod
    def of(cls, times: list[ServerTimes]) -> 'ServerShare':
        """
        Return the medians of what is neither waiting nor computing.

        That is the preparation, which is known by itself, and a record to the engine and one
        back, which share the rest alike.
        """
        decode = statistics.median(each.decode_ns for each in times)
        records = statistics.median(
            each.server_ns
            - each.decode_ns
            - each.queue_ns
            - each.vit_ns
            - each.prefill_ns
            - each.action_ns
            for each in times
        )
        half = max(records / 2, 0.0)
        return cls(front_end_ms=(decode + half) / 1e6, output_ms=half / 1e6)


def measure_server(
    config: ServerConfig,
    contract: ModelContract,
    clock: Clock,
    requests: int,
    done: Callable[[], None] = lambda: None,
) -> ServerShare:
    """
    Start a server's front end and engine, and ask it one request after the other.

    :param config: of the server; its calibration must be a file of the same lanes
    :param contract: of its model
    :param requests: how many count
    :param done: called after each answer
    :raises ModelError: if the engine does not start, or a request fails
    """
    answers: queue.SimpleQueue[Answer | str] = queue.SimpleQueue()
    front_end = start_server(config, clock, lambda robot, answer: answers.put(answer), answers.put)
    try:
        robot = SampleRobot(
            front_end, contract, clock, 'calibration', budget_ns=BUDGET_NS, period_ns=PERIOD_NS
        )
        times = []
        for number in range(WARM_UP + requests):
            robot.ask()
            times.append(_times(_next(answers, config.unit_timeout_s)))
            if number >= WARM_UP:
                done()
    finally:
        front_end.close()
    return ServerShare.of(times[WARM_UP:])


def _times(answer: Answer | str) -> ServerTimes:
    if isinstance(answer, str):
        raise ModelError(answer)
    if answer.reason is not Reason.OK:
        raise ModelError(f'the server answered {answer.reason.name}: {answer.detail}')
    return answer.times


def _next(answers: 'queue.SimpleQueue[Answer | str]', timeout_s: float) -> Answer | str:
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        raise ModelError(f'the server did not answer within {timeout_s:g} s') from None
