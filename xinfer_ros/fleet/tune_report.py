# SPDX-License-Identifier: Apache-2.0
"""What a search for settings came to: a table, a picture, and a parameter file of the server."""

from collections.abc import Sequence
from pathlib import Path

from xinfer_ros.fleet.plots import DPI, style
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.fleet.tune import TuneRecord

# settings of a policy that the server has itself, by its own names
OF_SERVER = {'max_held': 'max_in_stages'}


def tune_table(records: Sequence[TuneRecord]) -> ReportTable:
    """Return every policy with its capacity, the recommended one first."""
    first = records[0]
    return ReportTable(
        title=f'{first.workload}, device {first.calibration}, criterion {first.criterion}; '
        f'other numbers with {first.robots} robots',
        columns=(
            'policy', 'ERC', 'by default', 'margin', 'on time %', 'goodput 1/s', 'starved %',
            'fairness', 'tried', 'changes',
        ),
        rows=tuple(
            (
                record.policy,
                *(_capacity(erc, record) for erc in (record.erc, record.erc_default)),
                f'{100 * record.margin:+.1f}',
                f'{100 * record.attainment:.1f}',
                f'{record.goodput:.1f}',
                f'{100 * record.starvation:.1f}',
                f'{record.fairness:.3f}',
                str(record.tried),
                ' '.join(record.changes) or '–',
            )
            for record in records
        ),
        left=('changes',),
        note='Judged on rounds that nothing was tuned on. margin: points by which the worst '
        'round meets the criterion; tried: settings that were tried; without changes the defaults '
        'stand; +: no fleet up to the limit failed.',
    )  # fmt: skip


def _capacity(erc: int, record: TuneRecord) -> str:
    return f'{erc}+' if erc == record.max_robots else str(erc)


def tune_plot(path: Path, records: Sequence[TuneRecord]) -> None:
    """Draw the capacity of every policy, with its defaults and with what was found."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8.4, 1.4 + 0.42 * len(records)), dpi=DPI)
    axes = figure.subplots()
    for place, record in enumerate(reversed(records)):
        colour, _, _ = style(record.policy)
        axes.barh(place + 0.19, record.erc, 0.36, color=colour)
        axes.barh(place - 0.19, record.erc_default, 0.36, color=colour, alpha=0.4)
        axes.text(record.erc + 0.15, place + 0.19, str(record.erc), va='center', fontsize=8)
    axes.set_yticks(range(len(records)), [record.policy for record in reversed(records)])
    axes.set_xlabel('ERC [robots]; pale: with the defaults')
    first = records[0]
    axes.set_title(
        f'{first.workload}, device {first.calibration}, criterion {first.criterion}', fontsize=11
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis='x', alpha=0.25)
    figure.tight_layout()
    figure.savefig(path)


def server_yaml(record: TuneRecord, calibration: str) -> str:
    """
    Return a parameter file that a server takes.

    :param calibration: name or file of the device that was simulated
    """
    pairs = dict(change.split('=', 1) for change in record.changes)
    own = {OF_SERVER[key]: value for key, value in pairs.items() if key in OF_SERVER}
    rest = [f'{key}={value}' for key, value in pairs.items() if key not in OF_SERVER]
    lines = [
        f'# Recommended by xinfer tune: {record.workload} on {record.calibration}, criterion '
        f'{record.criterion}.',
        f'# Simulated capacity {record.erc} robots ({record.erc_default} by default); with '
        f'{record.robots} robots {100 * record.attainment:.1f} % on time.',
        '/fleet/xinfer_server:',
        '  ros__parameters:',
        f'    scheduling_policy: {record.policy}',
        f'    calibration: {_quoted(calibration)}',
    ]
    if rest:
        lines += ['    policy_settings:', *(f'    - {_quoted(pair)}' for pair in rest)]
    lines += [f'    {key}: {value}' for key, value in own.items()]
    if record.erc:
        lines.append(f'    max_robots: {min(record.erc, 256)}')
    return '\n'.join(lines) + '\n'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
