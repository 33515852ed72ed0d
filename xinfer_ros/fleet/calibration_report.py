# SPDX-License-Identifier: Apache-2.0
"""What a calibration found, as tables and as a picture."""

from pathlib import Path

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.calibrate_session import Calibrated
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.predict.calibration import Calibration

DPI = 110
QUIET = 1.25  # times slower in the usual run than in the quick ones: the machine is not idle


def stages_table(result: Calibrated) -> ReportTable:
    """Return the times of each stage, alone and beside others."""
    calibration, bound = result.calibration, result.calibration.bound
    rows = []
    for stage, alone in zip(Stage, result.fit.stages, strict=True):
        if alone is None:
            continue
        beside = [slowdown_beside(result, stage, other) for other in Stage]
        rows.append((
            stage.name,
            f'{alone.work_ms:.3f}',
            f'{alone.overhead_ms:.3f}',
            f'{alone.low_ms:.2f} to {alone.high_ms:.2f}',
            *('–' if slow is None else f'{slow:.2f}' for slow in beside),
            f'{1.0 / calibration.table.rate_without(stage, bound):.2f}',
            f'{alone.disturbance:.2f}',
        ))  # fmt: skip
    return ReportTable(
        title=f'{calibration.model} on {calibration.device}',
        columns=(
            'stage', 'work W ms', 'launch h ms', 'alone, 80 % of units ms',
            *(f'beside {stage.name}' for stage in Stage), 'all lanes full', 'disturbed',
        ),
        rows=tuple(rows),
        note='beside: how many times longer the work takes beside one unit of that stage; '
        f'all lanes full: beside {bound[0]}, {bound[1]}, {bound[2]} units less itself; disturbed: '
        'the median of all runs over that of the quarter that is believed, 1 on an idle machine.',
    )  # fmt: skip


def slowdown_beside(result: Calibrated, stage: Stage, other: Stage) -> float | None:
    """Return how much longer work takes beside one unit; None if that was not measured."""
    bound = result.calibration.bound
    if other.name not in result.stages or (other is stage and bound[stage] < 2):
        return None
    counts = [int(each is other) for each in Stage]
    return 1.0 / result.calibration.table.rate(stage, counts)


def batches_table(result: Calibrated) -> ReportTable:
    """Return the times of batches of each stage and of the whole pipeline."""
    calibration = result.calibration
    sizes = range(1, max(len(calibration.infer_ms), 1) + 1)
    rows = [
        (
            stage.name,
            *(
                f'{batch_ms(calibration, stage, size):.2f}'
                if size <= len(calibration.batch_work[stage])
                else '–'
                for size in sizes
            ),
        )
        for stage in Stage
        if stage.name in result.stages
    ]
    rows.append(('all stages', *(f'{calibration.inference_ms(size):.2f}' for size in sizes)))
    return ReportTable(
        title='Batches alone on the device: time of the whole batch [ms]',
        columns=('requests', *(str(size) for size in sizes)),
        rows=tuple(rows),
    )


def batch_ms(calibration: Calibration, stage: Stage, size: int) -> float:
    """Return how long a batch of a stage takes alone: ``h_s + W_s`` of the batch [ms]."""
    work = calibration.work_ms[stage] * calibration.batch_work[stage][size - 1]
    return calibration.overhead_ms[stage] + work


def result_lines(result: Calibrated) -> list[str]:
    """Return the rest of the result, and what to think of it, in words."""
    calibration = result.calibration
    lines = [
        f'one request alone {calibration.alone_ms:.1f} ms; every lane full: '
        f'{1e3 * calibration.saturated_per_ms:.1f} responses/s by batches of one, '
        f'{1e3 * calibration.batched_per_ms:.1f} by the best ones',
        f'around the lanes: {calibration.front_end_ms:.2f} ms before (preparation), '
        f'{calibration.output_ms:.2f} ms after',
    ]
    error = calibration.fit_error
    if error is None:
        lines.append('fit error: not known, it takes at least 2 rounds')
    else:
        lines.append(
            f'fit error: a fit to every other run foretells the times of the runs between to '
            f'{100 * error.median:.1f} % (median), {100 * error.largest:.1f} % (largest)'
        )
    if result.fit.smoothing > 0.0:
        lines.append(
            'rates that rose with the load were levelled: the largest change is '
            f'{100 * result.fit.smoothing:.1f} %'
        )
    worst = max(alone.disturbance for alone in result.fit.stages if alone is not None)
    if worst > QUIET:
        lines.append(
            f'the machine was busy: runs usually took {worst:.2f} times as long as undisturbed '
            'ones; repeat the measurement when it is idle'
        )
    return lines


def calibration_plot(path: Path, result: Calibrated) -> None:
    """Draw how stages slow each other down, and what batches cost a request."""
    from matplotlib.figure import Figure

    calibration, names = result.calibration, result.stages
    stages = [Stage[name] for name in names]
    figure = Figure(figsize=(10.5, 4.2), dpi=DPI)
    matrix_axes, batch_axes = figure.subplots(1, 2)
    full = [1.0 / calibration.table.rate_without(stage, calibration.bound) for stage in stages]
    matrix = np.array([
        [slowdown_beside(result, stage, other) or np.nan for other in stages] + [last]
        for stage, last in zip(stages, full, strict=True)
    ])  # fmt: skip
    matrix_axes.imshow(matrix, cmap='OrRd', vmin=1.0, vmax=max(1.5 * np.nanmax(matrix), 2.0))
    for row, column in np.ndindex(*matrix.shape):
        value = matrix[row, column]
        text = '–' if np.isnan(value) else f'{value:.2f}'
        matrix_axes.text(column, row, text, ha='center', va='center')
    matrix_axes.set_xticks(range(len(names) + 1), [*names, 'all full'])
    matrix_axes.set_yticks(range(len(names)), list(names))
    matrix_axes.set_xlabel('beside one unit of')
    matrix_axes.set_title('times slower than alone', fontsize=11)
    for stage, mark in zip(stages, 'osD', strict=False):
        sizes = range(1, len(calibration.batch_work[stage]) + 1)
        times = [batch_ms(calibration, stage, size) / size for size in sizes]
        batch_axes.plot(list(sizes), times, marker=mark, label=stage.name)
    sizes = range(1, len(calibration.infer_ms) + 1)
    times = [calibration.inference_ms(size) / size for size in sizes]
    batch_axes.plot(list(sizes), times, marker='v', color='black', label='all stages')
    batch_axes.set_xticks(list(sizes))
    batch_axes.set_ylim(bottom=0.0)
    batch_axes.set_xlabel('requests in the batch')
    batch_axes.set_ylabel('time a request [ms]')
    batch_axes.set_title('batches, alone on the device', fontsize=11)
    batch_axes.grid(alpha=0.25)
    batch_axes.legend(fontsize=8)
    figure.suptitle(
        f'{calibration.model} on {calibration.device}, {calibration.date}', fontsize=11
    )
    figure.tight_layout()
    figure.savefig(path)
