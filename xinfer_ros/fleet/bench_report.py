# SPDX-License-Identifier: Apache-2.0
"""The report of a benchmark: its pictures as files, or everything as one page."""

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet import bench_figures as figures
from xinfer_ros.fleet.bench_page import page
from xinfer_ros.fleet.bench_record import BenchRecord
from xinfer_ros.fleet.bench_run import FleetResult
from xinfer_ros.fleet.bench_table import bench_table
from xinfer_ros.fleet.logged_run import recorded_run
from xinfer_ros.fleet.machine_facts import MachineFacts
from xinfer_ros.fleet.physical_projection import SOURCE, PhysicalProjection
from xinfer_ros.fleet.stage_second import Errors, StageSecond, prediction_errors, stage_second
from xinfer_ros.sched.log_files import load_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """
    What a page tells.

    :param command: that measured it
    :param second: what our lanes did in the chosen second, None if it was not recorded
    :param second_title: which fleet and second that is
    :param errors: of predictions over the window of that fleet, none if nothing was recorded
    """

    title: str
    command: str
    records: tuple[BenchRecord, ...]
    facts: MachineFacts
    projection: PhysicalProjection
    second: StageSecond | None
    second_title: str
    errors: Errors

    @classmethod
    def of(
        cls,
        results: Sequence[FleetResult],
        *,
        title: str,
        command: str,
        facts: MachineFacts,
        log_folder: Path | None,
        second: float,
    ) -> 'BenchReport':
        """
        Return the report of what was measured.

        :param facts: of the machine, before anything was started
        :param log_folder: decision log of our engine, None if it has written none
        :param second: from when on the lanes are shown, after the warm-up of our last fleet [s]
        """
        shown, errors, second_title = None, {}, ''
        ours = [result for result in results if result.record.system == 'ours']
        if ours and log_folder is not None and log_folder.is_dir():
            run, last = recorded_run(load_log(log_folder)), ours[-1]
            shown = stage_second(run, last.window.from_ns + round(second * 1e9))
            errors = dict(prediction_errors(run, last.window.from_ns, last.window.to_ns))
            second_title = (
                f'Our lanes with {last.record.robots} robots, from {second:g} s after the warm-up '
                f'on, under {run.facts.policy}'
            )
        return cls(
            title=title,
            command=command,
            records=tuple(result.record for result in results),
            facts=facts,
            projection=PhysicalProjection.published(),
            second=shown,
            second_title=second_title,
            errors=errors,
        )

    def pictures(self) -> 'dict[str, tuple[Figure, str]]':
        """Return each picture with its caption, by name."""
        records = self.records
        found = {
            'latency': (
                figures.latency_figure(records),
                f'Response times: median, 95 % and 99 % quantile{self._scale_words()}.',
            ),
            'on_time': (
                figures.on_time_figure(records),
                'Answers within their budget: their share, and how many a second.',
            ),
            'projection': (
                figures.projection_figure(records, self.projection),
                f'{self._projection_words()} Source of the measurements: {SOURCE}.',
            ),
        }
        if self.second is not None and self.second.bars:
            found['second'] = (
                figures.stage_figure(self.second, self.second_title),
                'A bar is a unit; numbers are those of its robots at the server.',
            )
        if self.errors:
            found['prediction'] = (
                figures.error_figure(self.errors),
                'Remaining time of running units, as the calibration foresees it at every start '
                'and end of any unit, against the truth. The outermost bars hold all beyond.',
            )
        return found

    def _scale_words(self) -> str:
        several = len({record.robots for record in self.records}) > 1
        return ' by fleet size, on a log scale' if several else ''

    def _projection_words(self) -> str:
        far = any(self.projection.is_extrapolated(record.p50_ms) for record in self.records)
        beyond = ' Some fleets lie beyond any delay that was measured.' if far else ''
        return f'Not measured here but projected: {self.projection.words()}.{beyond}'


def write_pictures(folder: Path, report: BenchReport) -> None:
    """
    Write each picture as ``bench_NAME.png``.

    :raises ConfigError: if the folder can't be written to
    """
    for name, (figure, _) in report.pictures().items():
        path = folder / f'bench_{name}.png'
        try:
            figure.savefig(path)
        except OSError as error:
            raise ConfigError(f'{path} cannot be written: {error.strerror}') from error


def write_page(path: Path, report: BenchReport) -> None:
    """
    Write the page: one file that loads nothing else.

    :raises ConfigError: if it can't be written
    """
    text = page(
        title=report.title,
        command=report.command,
        facts=report.facts.lines(),
        table=bench_table(report.title, report.records),
        pictures=[
            (_svg(figure), html.escape(caption)) for figure, caption in report.pictures().values()
        ],
    )
    try:
        path.write_text(text, encoding='utf-8')
    except OSError as error:
        raise ConfigError(f'{path} cannot be written: {error.strerror}') from error


def _svg(figure: 'Figure') -> str:
    """Return a picture as an element of a page: the same drawing as its file."""
    text = io.StringIO()
    figure.savefig(text, format='svg', metadata={'Date': None})
    _, element, rest = text.getvalue().partition('<svg')
    return element + rest
