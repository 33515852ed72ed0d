# SPDX-License-Identifier: Apache-2.0
"""The picture of a plan: both tiers over the deadline."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from xinfer_ros.fleet.plan import ExecutionHorizon, FleetPlan, PlanRecord, constant
from xinfer_ros.fleet.plan_check import CheckRecord
from xinfer_ros.fleet.plots import DPI

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 160
Array = npt.NDArray[np.float64]
_COLOURS = ('#1b7a3d', '#c98a00', '#6a3d9a', '#b5332e')
_BRAIN = '#2a7fb8'


def plan_plot(
    path: Path,
    title: str,
    plan: FleetPlan,
    horizons: Sequence[ExecutionHorizon],
    records: Sequence[PlanRecord],
    checks: Sequence[CheckRecord],
) -> None:
    """Draw both tiers over the deadline, with what both hold shaded."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.8), dpi=DPI)
    axes = figure.subplots()
    places = [record.deadline_ms for record in records if record.deadline_ms is not None]
    deadlines = np.linspace(0.0, 1.15 * max(places), POINTS + 1)[1:]
    most = 0
    for colour, horizon in zip(_COLOURS, horizons, strict=False):
        found = [plan.record(constant(float(deadline)), horizon) for deadline in deadlines]
        _draw(axes, deadlines, found, colour)
        own = [record for record in records if record.execution_steps == horizon.steps]
        _draw_mixes(axes, own, colour)
        most = max(most, *(record.robots for record in found))
    if records[0].brain_robots is not None:
        axes.axhline(records[0].brain_robots, color=_BRAIN, linewidth=1.6, label='brain tier')
    _draw_checks(axes, checks, records[0])
    highest = max(max(r.vla_robots, r.brain_robots or 0) for r in records)
    axes.set_ylim(0.0, max(1.2 * most, min(1.15 * highest, 2.5 * most), 1.0))
    axes.set_xlim(0.0, float(deadlines[-1]))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel('deadline: response budget of every request [ms]')
    axes.set_ylabel('robots')
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc='upper center', bbox_to_anchor=(0.5, -0.13), ncols=3)
    figure.tight_layout()
    figure.savefig(path)


def _draw(axes: 'Axes', deadlines: Array, records: Sequence[PlanRecord], colour: str) -> None:
    first = records[0]
    name = _name(first)
    robots = [record.robots for record in records]
    vla_robots = [record.vla_robots for record in records]
    axes.step(
        deadlines, vla_robots, where='post', color=colour, linewidth=1.6,
        label=f'VLA tier, {name}{_turning_point(records)}',
    )  # fmt: skip
    axes.fill_between(
        deadlines, robots, step='post', color=colour, alpha=0.15, linewidth=0,
        label=f'{"VLA tier holds" if first.brain_robots is None else "both hold"}, {name}',
    )  # fmt: skip


def _name(record: PlanRecord) -> str:
    return f'{record.execution_steps} × {record.spacing_ms:g} ms'


def _turning_point(records: Sequence[PlanRecord]) -> str:
    """Return up to which deadline the VLA tier binds, in words; nothing if no brain ever does."""
    binding = [r.deadline_ms for r in records if r.binds != 'VLA' and r.deadline_ms is not None]
    return f' (binds below {min(binding):.0f} ms)' if binding else ''


def _draw_mixes(axes: 'Axes', records: Sequence[PlanRecord], colour: str) -> None:
    for record in records:
        if record.deadline_ms is None:
            name = f'{record.budgets}, {_name(record)}'
            axes.axhline(
                record.robots, color=colour, linewidth=1.3, linestyle='--', label=f'fleet, {name}'
            )


def _draw_checks(axes: 'Axes', checks: Sequence[CheckRecord], first: PlanRecord) -> None:
    found = [(c.deadline_ms, c.simulated) for c in checks if c.deadline_ms is not None]
    if found:
        axes.plot(
            *zip(*found, strict=True), 'x', color='black', markersize=7, markeredgewidth=1.8,
            label=f'VLA tier, {_name(first)}, simulated',
        )  # fmt: skip
