# SPDX-License-Identifier: Apache-2.0
"""The metrics of the server in Prometheus' text format, made when they are scraped."""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason
from xinfer_ros.observe.engine_totals import EngineFigures
from xinfer_ros.observe.fleet_status import FleetStatus
from xinfer_ros.observe.fleet_view import FleetView
from xinfer_ros.observe.histogram import Counts
from xinfer_ros.observe.robot_metrics import robot_metrics
from xinfer_ros.observe.totals import TotalFigures
from xinfer_ros.sched.decision import Verdict

CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
_CHECKS = {
    'current': Verdict.DEFERRED_CURRENT,
    'forecast': Verdict.DEFERRED_FORECAST,
    'gate': Verdict.DEFERRED_GATE,
    'rollout': Verdict.DEFERRED_ROLLOUT,
    'batch': Verdict.DEFERRED_BATCH,
    'put_off': Verdict.PUT_OFF,
}
_STARTS = {'ordinary': Verdict.ISSUED, 'protected': Verdict.ISSUED_PROTECTED}
_ADMISSION = {
    'capacity': Reason.REJECTED_CAPACITY,
    'slots': Reason.REJECTED_NO_SLOT,
}


def prometheus_text(view: FleetView, now_ns: int, *, per_robot: bool = True) -> bytes:
    """
    Return the metrics of this moment, see ``CONTENT_TYPE``.

    :param now_ns: server's monotonic clock [ns]
    :param per_robot: with a label for each registered robot, of which there are at most max_robots
    """
    registry = CollectorRegistry()
    registry.register(_FleetCollector(view, now_ns, per_robot=per_robot))
    ProcessCollector(namespace='xinfer', registry=registry)
    return generate_latest(registry)


class _FleetCollector(Collector):
    def __init__(self, view: FleetView, now_ns: int, *, per_robot: bool) -> None:
        self._view, self._now_ns, self._per_robot = view, now_ns, per_robot

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        view, now_ns = self._view, self._now_ns
        status, totals = view.status(now_ns), view.totals()
        yield from _server(status, totals)
        yield from _requests(status, totals)
        yield from _times(totals)
        yield from _engine(status, view.engines(now_ns))
        if self._per_robot:
            yield from robot_metrics(status)


def _server(status: FleetStatus, totals: TotalFigures) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        'xinfer_server_info',
        'what is served, and in which life of the engine',
        labels=('model', 'scheduling_policy', 'epoch'),
    )
    info.add_metric((status.model, status.scheduling_policy, str(status.epoch)), 1)
    yield info
    ready = int(status.state is ServerPhase.READY)
    yield GaugeMetricFamily('xinfer_engine_ready', 'whether robots are served', ready)
    registered = sum(robot.registered for robot in status.robots)
    yield GaugeMetricFamily('xinfer_robots', 'registered robots', registered)
    yield GaugeMetricFamily('xinfer_robots_max', 'most robots at once', status.max_robots)
    yield CounterMetricFamily('xinfer_robots_lost', 'robots whose lease was over', totals.lost)
    yield GaugeMetricFamily('xinfer_slots', 'slots of the engine', status.num_slots)
    yield GaugeMetricFamily('xinfer_slots_used', 'slots in use', status.slots_used)


def _requests(status: FleetStatus, totals: TotalFigures) -> Iterator[Metric]:
    yield CounterMetricFamily('xinfer_requests', 'observations', totals.requests)
    answers = {reason.name: count for reason, count in status.reasons.items()}
    yield _counters(
        'xinfer_answers',
        'answers, by reason; OK came with rows',
        'reason',
        {Reason.OK.name: status.responses, **answers},
    )
    yield CounterMetricFamily(
        'xinfer_answers_on_time', 'answers with rows within their budget', totals.on_time
    )
    refused = {reason.name: count for reason, count in totals.not_registered.items()}
    yield _counters(
        'xinfer_registrations_refused', 'refusals at registration, by reason', 'reason', refused
    )
    admission = {check: status.reasons[reason] for check, reason in _ADMISSION.items()}
    admission['fleet_full'] = totals.not_registered[Reason.REJECTED_FLEET_FULL]
    yield _counters(
        'xinfer_admission_refusals', 'admission refusals, by check', 'check', admission
    )
    yield CounterMetricFamily('xinfer_ticks', 'control ticks of robots', totals.ticks)
    yield CounterMetricFamily(
        'xinfer_starved_ticks', 'control ticks of robots without an action', totals.starved_ticks
    )
    window = f'over {status.window_s:g} s'
    yield GaugeMetricFamily(
        'xinfer_attainment_ratio', f'responses within their budget, {window}', status.attainment
    )
    yield GaugeMetricFamily(
        'xinfer_goodput_per_second', f'responses within their budget, {window}', status.goodput_hz
    )
    yield GaugeMetricFamily(
        'xinfer_responses_per_second', f'answers with rows, {window}', status.responses_hz
    )
    yield GaugeMetricFamily(
        'xinfer_starved_ratio', f'control ticks without an action, {window}', status.starved_share
    )


def _times(totals: TotalFigures) -> Iterator[Metric]:
    parts = HistogramMetricFamily(
        'xinfer_answer_part_seconds',
        'where the time of answers with rows went; server has all parts but the network',
        labels=('part',),
    )
    for part, counts in totals.parts.items():
        parts.add_metric((part,), _buckets(counts), counts.sum_ns / 1e9)
    yield parts
    slack = HistogramMetricFamily(
        'xinfer_slack_seconds', 'time left to the deadline when an answer was published', labels=()
    )
    slack.add_metric((), _buckets(totals.slack), None)
    yield slack


def _engine(status: FleetStatus, engines: EngineFigures) -> Iterator[Metric]:
    sums = engines.sums
    yield CounterMetricFamily(
        'xinfer_engine_restarts', 'engines that ended by themselves', engines.restarts
    )
    busy_s = [busy_ns / 1e9 for busy_ns in sums.busy_ns]
    yield _counters('xinfer_lane_busy_seconds', 'time at work', 'stage', _by_stage(busy_s))
    yield _gauges(
        'xinfer_lane_occupancy_ratio',
        f'share of time at work, over {status.window_s:g} s',
        'stage',
        _by_stage(status.occupancy),
    )
    yield _gauges('xinfer_lane_units', 'units at work', 'stage', _by_stage(engines.running))
    yield _gauges(
        'xinfer_waiting_requests', 'requests that wait for a lane', 'stage',
        _by_stage(status.waiting),
    )  # fmt: skip
    yield GaugeMetricFamily(
        'xinfer_protected_requests', 'requests that are shielded', status.protected_requests
    )
    starts = {kind: sums.verdicts[verdict] for kind, verdict in _STARTS.items()}
    yield _counters('xinfer_starts', 'stages of requests that were started', 'kind', starts)
    deferrals = {check: sums.verdicts[verdict] for check, verdict in _CHECKS.items()}
    yield _counters('xinfer_deferrals', 'decisions to let a request wait', 'check', deferrals)
    yield SummaryMetricFamily(
        'xinfer_prediction_error_seconds',
        'difference of the predicted and the seen end of units',
        count_value=sums.predictions,
        sum_value=sums.prediction_error_ns / 1e9,
    )
    yield _gauges(
        'xinfer_stage_correction_ratio', "work of units over the calibration's", 'stage',
        _by_stage(status.correction),
    )  # fmt: skip
    yield GaugeMetricFamily(
        'xinfer_mirror_error_steps', 'mean error of foreseen executed steps', status.mirror_error
    )


def _by_stage(values: Sequence[float]) -> dict[str, float]:
    return {stage.name.lower(): value for stage, value in zip(Stage, values, strict=True)}


def _counters(name: str, about: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, about, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def _gauges(name: str, about: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def _buckets(counts: Counts) -> list[tuple[str, float]]:
    bounds = [*(f'{bound_ns / 1e9:g}' for bound_ns in counts.bounds_ns), '+Inf']
    return list(zip(bounds, counts.cumulative, strict=True))
