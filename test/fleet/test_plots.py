# SPDX-License-Identifier: Apache-2.0
"""Pictures are written and hold something."""

from pathlib import Path

from xinfer_ros.fleet.plots import Curve, Latencies, bar_plot, latency_plot, line_plot
from xinfer_ros.fleet.records import DecisionCostRecord
from xinfer_ros.fleet.round_plots import cost_curves


def _is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b'\x89PNG') and path.stat().st_size > 5_000


def test_lines_are_drawn(tmp_path: Path) -> None:
    line_plot(
        tmp_path / 'a.png',
        title='T',
        y_label='y',
        curves=[
            Curve(
                name='XInfer', style='xinfer', points={8: (99.0, 98.0), 18: (96.0, 95.0)},
                published={18: 96.4},
            ),
            Curve(name='other', style='unheard of', points={8: (50.0,)}),
        ],
        level=95.0,
    )  # fmt: skip
    assert _is_picture(tmp_path / 'a.png')


def test_latencies_are_drawn_with_one_field_a_budget(tmp_path: Path) -> None:
    latency_plot(
        tmp_path / 'a.png',
        title='T',
        latencies=[
            Latencies(name='x', style='xinfer', budget_ms=b, quantiles_ms=(10.0, 50.0, b))
            for b in (80.0, 90.0, 100.0, 120.0, 200.0, 300.0, 400.0)
        ],
    )
    assert _is_picture(tmp_path / 'a.png')


def test_bars_are_drawn(tmp_path: Path) -> None:
    bar_plot(
        tmp_path / 'a.png',
        title='T',
        y_label='y',
        groups=['a', 'b'],
        bars={'x': [(1.0, 2.0), (3.0, -1.0)], 'z': [(0.0, 0.0), (1.0, 1.0)]},
    )
    assert _is_picture(tmp_path / 'a.png')


def test_costs_are_drawn_over_sizes_far_apart(tmp_path: Path) -> None:
    records = [
        DecisionCostRecord(
            implementation=made, policy='xinfer', robots=robots, p50_us=2.0, p99_us=5.0,
            calls=100, repeats=3, period_ms=180.0,
        )
        for made in ('native', 'reference')
        for robots in (8, 1000)
    ]  # fmt: skip
    curves = cost_curves(records)
    assert [(curve.dashed, curve.open_marks) for curve in curves] == [
        (False, False), (True, False), (False, True), (True, True),
    ]  # fmt: skip
    line_plot(tmp_path / 'a.png', title='T', y_label='us', curves=curves, log_x=True, log_y=True)
    assert _is_picture(tmp_path / 'a.png')
