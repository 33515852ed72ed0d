# SPDX-License-Identifier: Apache-2.0
"""The metrics, and the dashboard and alert rules that are made of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from xinfer_ros.engine.records import Beat
from xinfer_ros.errors import Rejected
from xinfer_ros.observe.prometheus import prometheus_text

from .viewed_fleet import MS, S, ViewedFleet

CONFIG = Path(__file__).parents[2] / 'config'
METRIC = re.compile(r'\bxinfer_\w+')
BEAT = Beat(
    oldest_unit_ns=0,
    slowdown=1.0,
    correction=(1.25, 1.0, 1.0),
    mirror_error=0.5,
    busy_ns=(2 * S, 3 * S, 4 * S),
    running=(1, 0, 1),
    waiting=(0, 2, 0),
    protected=1,
    verdicts=(10, 2, 7, 3, 0, 0, 0, 1),
    prediction_error_ns=30 * MS,
    predictions=15,
)


def _samples(fleet: ViewedFleet, **options: Any) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the metrics by name and label values."""
    text = prometheus_text(fleet.view, fleet.now_ns, **options).decode()
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def fleet() -> ViewedFleet:
    """Give a fleet that has been served for a second, well and badly."""
    fleet = ViewedFleet()
    robot = fleet.robot('left')
    told = {'answered_request_id': 1, 'round_trip_ns': 45 * MS}
    fleet.serve(robot, 1, 30, ticks=10)
    fleet.serve(robot, 2, 200, ticks=30, starved_ticks=5, **told)
    fleet.bench.ask(robot, 3, budget_ns=1)
    fleet.bench.engine.tell(BEAT)
    return fleet


def test_every_kind_of_metric_is_there_and_right(fleet: ViewedFleet) -> None:
    with pytest.raises(Rejected):
        fleet.robot('left', instance=2)
    found = _samples(fleet)
    expected = {
        ('xinfer_requests_total', ()): 3,
        ('xinfer_answers_total', ('OK',)): 2,
        ('xinfer_answers_total', ('REJECTED_BUDGET',)): 1,
        ('xinfer_answers_on_time_total', ()): 1,
        ('xinfer_registrations_refused_total', ('DUPLICATE_ID',)): 1,
        ('xinfer_admission_refusals_total', ('capacity',)): 0,
        ('xinfer_attainment_ratio', ()): 0.5,
        ('xinfer_ticks_total', ()): 20,
        ('xinfer_starved_ticks_total', ()): 5,
        ('xinfer_starved_ratio', ()): 0.25,
        ('xinfer_robots', ()): 1,
        ('xinfer_robots_lost_total', ()): 0,
        ('xinfer_slots', ()): 4,
        ('xinfer_slots_used', ()): 0,
        ('xinfer_engine_ready', ()): 1,
        ('xinfer_engine_restarts_total', ()): 0,
        ('xinfer_server_info', ('7', 'scripted', 'foresight')): 1,
        ('xinfer_lane_busy_seconds_total', ('prefill',)): 3,
        ('xinfer_lane_units', ('action',)): 1,
        ('xinfer_waiting_requests', ('prefill',)): 2,
        ('xinfer_protected_requests', ()): 1,
        ('xinfer_starts_total', ('ordinary',)): 10,
        ('xinfer_starts_total', ('protected',)): 2,
        ('xinfer_deferrals_total', ('current',)): 7,
        ('xinfer_deferrals_total', ('forecast',)): 3,
        ('xinfer_deferrals_total', ('batch',)): 1,
        ('xinfer_prediction_error_seconds_sum', ()): 0.03,
        ('xinfer_prediction_error_seconds_count', ()): 15,
        ('xinfer_robot_level', ('left',)): 1,
        ('xinfer_robot_network_seconds', ('left',)): 0.015,
        ('xinfer_robot_latency_seconds', ('0.5', 'left')): 0.115,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert found['xinfer_process_cpu_seconds_total', ()] > 0


def test_histograms_count_exactly(fleet: ViewedFleet) -> None:
    """Thirty and two hundred milliseconds; the second was 24 ms late. Bounds are inclusive."""
    found = _samples(fleet)
    name = 'xinfer_answer_part_seconds'
    counts = {le: found[f'{name}_bucket', (le, 'server')] for le in ('0.02', '0.035', '0.2')}
    assert counts == {'0.02': 0, '0.035': 1, '0.2': 2}
    assert found[f'{name}_sum', ('server',)] == pytest.approx(0.23)
    assert found[f'{name}_count', ('queue',)] == 2
    assert found[f'{name}_sum', ('network',)] == pytest.approx(0.015)
    assert found[f'{name}_count', ('network',)] == 1
    slack = {le: found['xinfer_slack_seconds_bucket', (le,)] for le in ('-0.05', '-0.02', '0.2')}
    assert slack == {'-0.05': 0, '-0.02': 1, '0.2': 2}
    assert found['xinfer_slack_seconds_bucket', ('+Inf',)] == 2


def test_counters_go_on_when_the_engine_is_started_anew(fleet: ViewedFleet) -> None:
    fleet.bench.engine.die(8)
    assert _samples(fleet)['xinfer_engine_ready', ()] == 0
    fleet.bench.engine.become_ready(8)
    fleet.bench.engine.tell(BEAT)
    found = _samples(fleet)
    assert found['xinfer_engine_restarts_total', ()] == 1
    assert found['xinfer_lane_busy_seconds_total', ('vit',)] == 4
    assert found['xinfer_answers_total', ('OK',)] == 2
    assert found['xinfer_server_info', ('8', 'scripted', 'foresight')] == 1


def test_labels_of_robots_are_bounded_and_go_with_them() -> None:
    """At most max_robots at once, whoever comes and goes; none if that is not wanted."""
    fleet = ViewedFleet(max_robots=3)
    for number in range(12):
        fleet.serve(fleet.robot(f'r{number}'), 1, 30)
        fleet.pass_ms(1_700)
        fleet.bench.front_end.forget_silent()
    names = {labels[0] for name, labels in _samples(fleet) if name == 'xinfer_robot_level'}
    assert names == {'r10', 'r11'}  # the others' lease is over
    assert len(fleet.status().robots) == 12  # the lost ones are shown, and are no label
    found = _samples(fleet, per_robot=False)
    assert not [name for name, _ in found if name.startswith('xinfer_robot_')]
    assert found['xinfer_robots', ()] == 2


def test_names_keep_to_the_conventions(fleet: ViewedFleet) -> None:
    """Base units at the end, _total on counters, a help text on all."""
    text = prometheus_text(fleet.view, fleet.now_ns).decode()
    for family in text_string_to_metric_families(text):
        assert re.fullmatch(r'xinfer_[a-z_]+', family.name)
        assert family.documentation
        assert not re.search('_(ms|ns|percent)$', family.name)
        if family.type == 'counter':
            assert all(sample.name.endswith('_total') for sample in family.samples)


def _expressions() -> list[tuple[str, str]]:
    """Return where each expression of the dashboard and the alert rules stands, and itself."""
    dashboard = json.loads((CONFIG / 'grafana_dashboard.json').read_text())
    found = [
        (f'panel {panel["title"]}', target['expr'])
        for panel in dashboard['panels']
        for target in panel['targets']
    ]
    found += [('annotation', note['expr']) for note in dashboard['annotations']['list']]
    rules = yaml.safe_load((CONFIG / 'prometheus_alerts.yaml').read_text())
    found += [
        (f'alert {rule["alert"]}', rule['expr'])
        for group in rules['groups']
        for rule in group['rules']
    ]
    return found


def test_dashboard_and_alerts_use_only_metrics_and_labels_that_exist(fleet: ViewedFleet) -> None:
    text = prometheus_text(fleet.view, fleet.now_ns).decode()
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, {'instance'}).update(sample.labels)
    expressions = _expressions()
    assert len(expressions) > 40
    for place, expression in expressions:
        used = METRIC.findall(expression)
        assert used, place
        for name in used:
            assert name in labels, f'{place}: there is no metric {name}'
        known = set().union(*(labels[name] for name in used))
        for label in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression):
            assert label in known, f'{place}: no label {label}'
        for grouping in re.findall(r'\bby \(([^)]*)\)', expression):
            assert {name.strip() for name in grouping.split(',')} <= known, place


def test_every_trouble_has_an_alert_that_says_what_would_help() -> None:
    rules = yaml.safe_load((CONFIG / 'prometheus_alerts.yaml').read_text())['groups'][0]['rules']
    names = {rule['alert'].removeprefix('Xinfer') for rule in rules}
    assert names >= {
        'RobotStarving', 'AttainmentLow', 'EngineRestarted', 'ServerAbsent', 'PredictionOff',
        'SlotsExhausted',
    }  # fmt: skip
    for rule in rules:
        assert rule['labels']['severity'] in ('critical', 'warning')
        assert {'summary', 'description'} <= set(rule['annotations'])


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = json.loads((CONFIG / 'grafana_dashboard.json').read_text())['panels']
    assert len({panel['id'] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel['gridPos']
        taken = {(at['x'] + x, at['y'] + y) for x in range(at['w']) for y in range(at['h'])}
        assert not taken & cells, panel['title']
        assert at['x'] + at['w'] <= 24
        cells |= taken
