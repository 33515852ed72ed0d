# SPDX-License-Identifier: Apache-2.0
"""Pictures of the brain tier: one run over time, and the controllers side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xinfer_ros.brain.scenario import BrainScenario
from xinfer_ros.brain.simulation import SimulationLog
from xinfer_ros.fleet.brain_records import BrainRecord
from xinfer_ros.fleet.brain_runs import DEFAULT, BrainTask
from xinfer_ros.fleet.plots import DPI

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NS = 1e9
WINDOW_S = 30.0
LEGEND = 1.3  # of the height, so that a legend hides nothing
_COLOURS = {
    'open': '#8c8c8c',
    'aimd_usage': '#c98a00',
    'aimd_hits': '#6a3d9a',
    DEFAULT: '#1b7a3d',
}
_FIXED = '#2a7fb8'


def run_plot(path: Path, task: BrainTask, log: SimulationLog) -> None:
    """Draw a run over time: episodes, tokens, hits and requests per second."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 8.6), dpi=DPI)
    episodes, tokens, hits, rates = figure.subplots(4, 1, sharex=True)
    _draw_episodes(episodes, log)
    _draw_tokens(tokens, task, log)
    _draw_turns(hits, rates, task.scenario, log)
    for axes in (episodes, tokens, hits, rates):
        axes.grid(alpha=0.25)
        axes.set_ylim(bottom=0.0)
        for change in task.scenario.changes:
            axes.axvline(change.at_s / 60.0, color='black', linewidth=0.9, linestyle=':')
    rates.set_xlabel('simulated time [min]')
    rates.set_xlim(0.0, task.scenario.duration_s / 60.0)
    figure.suptitle(
        f'{task.controller}, {task.scenario.robots} robots, {task.scenario.name}, '
        f'seed {task.seed}',
        fontsize=11,
    )
    figure.tight_layout()
    figure.savefig(path)


def _draw_episodes(axes: 'Axes', log: SimulationLog) -> None:
    minutes = [sample.at_ns / NS / 60.0 for sample in log.samples]
    states = [sample.state for sample in log.samples]
    axes.plot(minutes, [s.admitted for s in states], color='#1b7a3d', label='admitted')
    axes.plot(minutes, [s.parked for s in states], color='#b5332e', label='parked')
    axes.plot(minutes, [s.queued for s in states], color='#8c8c8c', label='queued')
    axes.set_ylabel('episodes')
    axes.set_ylim(top=LEGEND * axes.get_ylim()[1])
    axes.legend(fontsize=8, loc='upper right', ncols=3)


def _draw_tokens(axes: 'Axes', task: BrainTask, log: SimulationLog) -> None:
    minutes = [sample.at_ns / NS / 60.0 for sample in log.samples]
    states = [sample.state for sample in log.samples]
    axes.plot(
        minutes, [s.held_tokens / 1e6 for s in states], color='#1b7a3d', label='contexts admitted'
    )
    estimates = [np.nan if s.estimate_tokens is None else s.estimate_tokens / 1e6 for s in states]
    if not np.isnan(estimates).all():
        axes.plot(minutes, estimates, color='#2a7fb8', label='capacity, estimated')
    times, shares = [0.0], [1.0]
    for change in task.scenario.changes:
        times.append(change.at_s / 60.0)
        shares.append(change.capacity)
    model = task.model
    sizes = [model.attention_blocks(share) * model.block_tokens / 1e6 for share in shares]
    times.append(task.scenario.duration_s / 60.0)
    axes.step(
        times, [*sizes, sizes[-1]], where='post', color='black', linewidth=0.9, label='capacity'
    )
    axes.set_ylabel('tokens [million]')
    axes.set_ylim(top=LEGEND * axes.get_ylim()[1])
    axes.legend(fontsize=8, loc='upper right', ncols=3)


def _draw_turns(hits: 'Axes', rates: 'Axes', scenario: BrainScenario, log: SimulationLog) -> None:
    edges = np.arange(0.0, scenario.duration_s + 1.0, WINDOW_S)
    middles = (edges[:-1] + WINDOW_S / 2.0) / 60.0
    times = np.array([turn.at_ns for turn in log.turns]) / NS
    again = np.array([turn.hit is not None for turn in log.turns], bool)
    found = np.array([turn.hit is True for turn in log.turns], bool)
    asked, _ = np.histogram(times[again], edges)
    kept, _ = np.histogram(times[found], edges)
    shares = np.where(asked > 0, 100.0 * kept / np.maximum(asked, 1), np.nan)
    hits.plot(middles, shares, color='#6a3d9a')
    hits.set_ylabel('hits [%]')
    counts, _ = np.histogram(times, edges)
    rates.plot(middles, counts / WINDOW_S, color='#c98a00')
    rates.set_ylabel('requests [1/s]')


def controllers_plot(path: Path, groups: Sequence[Sequence[BrainRecord]]) -> None:
    """Draw requests per second of every controller, a field a scenario, with their range."""
    from matplotlib.figure import Figure

    columns = 4
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(13.0, 3.9 * rows), dpi=DPI)
    fields = list(figure.subplots(rows, columns, squeeze=False).flat)
    most = max(record.rps_most for records in groups for record in records)
    for axes, records in zip(fields, groups, strict=False):
        _draw_controllers(axes, records)
        axes.set_xlim(0.0, 1.05 * most)
    for axes in fields[len(groups) :]:
        axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(path)


def _draw_controllers(axes: 'Axes', records: Sequence[BrainRecord]) -> None:
    names = [record.controller.replace('static:', 'K = ') for record in records]
    places = max(len(records), 8) - 1 - np.arange(len(records))
    rates = [record.rps for record in records]
    reach = [
        [record.rps - record.rps_least for record in records],
        [record.rps_most - record.rps for record in records],
    ]
    colours = [_COLOURS.get(record.controller, _FIXED) for record in records]
    axes.barh(places, rates, 0.72, color=colours, alpha=0.8)
    axes.errorbar(rates, places, xerr=reach, fmt='none', ecolor='black', elinewidth=0.8, capsize=2)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_title(f'{records[0].scenario}, {records[0].robots} robots', fontsize=10)
    axes.set_xlabel('requests [1/s]', fontsize=9)
    axes.set_ylim(-0.6, max(len(records), 8) - 0.4)
    axes.grid(axis='x', alpha=0.25)
