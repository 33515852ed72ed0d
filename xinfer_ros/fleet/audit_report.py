# SPDX-License-Identifier: Apache-2.0
"""How good the predictions of a run were, as a table and as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from xinfer_ros.core.stage import Stage
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.predict.audit import Audit, LeftOut
from xinfer_ros.predict.error_summary import ErrorSummary

DPI = 110
MAX_POINTS = 4000  # of a stage in the picture
_COLOURS = {Stage.VIT: '#2a7fb8', Stage.PREFILL: '#c98a00', Stage.ACTION: '#b5332e'}


def errors_table(title: str, kinds: Mapping[str, Sequence[ErrorSummary]]) -> ReportTable:
    """
    Return the errors by stage.

    :param kinds: the summaries of each kind of prediction
    """
    return ReportTable(
        title=title,
        columns=(
            'predicted by', 'stage', 'units', 'mean ms', 'MAE ms', 'MAE %', 'bias ms',
            'too long %', 'by ms', 'too short %', 'by ms ', 'MAE a request', 'bias a request',
        ),
        rows=tuple(_row(kind, summary) for kind, found in kinds.items() for summary in found),
        note='Errors of the remaining time of running stages, predicted less true, at every start '
        'and end of any unit. table: by the calibration alone; corrected: with the online '
        'correction of a scheduler. mean: time of a unit; MAE %: of that. too long, too short: '
        'share of predictions and their mean error. a request: every request counts once.',
        left=('stage',),
    )  # fmt: skip


def _row(kind: str, summary: ErrorSummary) -> tuple[str, ...]:
    balanced = (summary.request_mae_ms, summary.request_bias_ms)
    return (
        kind,
        summary.stage,
        str(summary.units),
        f'{summary.stage_ms:.2f}',
        f'{summary.mae_ms:.3f}',
        f'{100 * summary.mae_share:.1f}',
        f'{summary.bias_ms:+.3f}',
        f'{100 * summary.over_share:.0f}',
        f'{summary.over_ms:+.3f}',
        f'{100 * summary.under_share:.0f}',
        f'{summary.under_ms:+.3f}',
        '–' if balanced[0] is None else f'{balanced[0]:.3f}',
        '–' if balanced[1] is None else f'{balanced[1]:+.3f}',
    )


def left_out_line(left_out: LeftOut) -> str:
    """Return what does not count, in words."""
    return (
        f'left out: {left_out.failed} units that failed, {left_out.unended} that had not ended, '
        f'{left_out.early} that started before the record begins'
    )


def audit_plot(path: Path, title: str, audits: Mapping[str, Audit]) -> None:
    """
    Draw the errors of each kind of prediction over time, and how often each size is.

    :param audits: by kind, one row of the picture each
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.4 * len(audits)), dpi=DPI)
    rows = figure.subplots(len(audits), 2, squeeze=False)
    every = np.concatenate([audit.error_ms for audit in audits.values()])
    low, high = np.quantile(every, (0.005, 0.995))
    edges = np.linspace(low, max(high, low + 1e-6), 61)
    origin_ns = min(int(audit.at_ns.min()) for audit in audits.values())
    for (kind, audit), (over_time, sizes) in zip(audits.items(), rows, strict=True):
        for stage in Stage:
            chosen = audit.stage == stage
            if not chosen.any():
                continue
            at_s, errors = (audit.at_ns[chosen] - origin_ns) / 1e9, audit.error_ms[chosen]
            step = -(-len(errors) // MAX_POINTS)
            colour = _COLOURS[stage]
            over_time.plot(at_s[::step], errors[::step], '.', color=colour, ms=2, alpha=0.4)
            sizes.hist(errors, edges, histtype='step', color=colour, label=stage.name)
        over_time.set_ylim(low, max(high, low + 1e-6))
        over_time.set_title(f'{kind}: MAE {audit.mae_ms():.2f} ms', fontsize=10)
        over_time.set_xlabel('time [s]')
        over_time.set_ylabel('predicted less true [ms]')
        sizes.set_xlabel('predicted less true [ms]')
        sizes.set_ylabel('predictions')
        sizes.legend(fontsize=8)
        for axes, line in ((over_time, over_time.axhline), (sizes, sizes.axvline)):
            axes.grid(alpha=0.25)
            line(0.0, color='black', linewidth=0.8)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path)
