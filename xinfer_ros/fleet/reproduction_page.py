# SPDX-License-Identifier: Apache-2.0
"""The page docs/reproduction.md and its pictures, made from the numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.paper_tables import ABLATIONS, TITLE_OF, FleetCase, PaperTables
from xinfer_ros.fleet.plots import Curve, bar_plot, line_plot
from xinfer_ros.fleet.report_table import ReportTable
from xinfer_ros.fleet.reproduction import FULL, POLICIES, Reproduction

PAGE = 'reproduction'


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of the page: name of its file, and what it shows."""

    file: str
    caption: str


def page_text(
    tables: Sequence[ReportTable], pictures: Sequence[Picture], sim: Reproduction, command: str
) -> str:
    """
    Return the page.

    :param command: that makes it again
    """
    seconds = f'{sim.round.end_s:g} s, the first {sim.round.warm_up_s:g} s of which do not count'
    rounds = '1 round' if len(sim.seeds) == 1 else f'{len(sim.seeds)} rounds'
    head = [
        '# The published tables beside simulated ones',
        '',
        f'Made by `{command}`; do not edit. Calibration `{sim.calibration}`, '
        f'{rounds} of {seconds}, seed {", ".join(map(str, sim.seeds))}, '
        f'minimum period {sim.round.period_ms:g} ms. The same seeds give the same numbers.',
        '',
        'The rate table of the published device is not public. The calibration is a parametric '
        'one that was fitted to the tables below, so agreement of single cells says little; what '
        'the fit could not choose is the order of the policies and the worth of each part. '
        '`foresight` is the default scheduling policy of this package, `foresight_shed` the same '
        'with leave to put off one request in twenty.',
        '',
    ]
    shown = [
        f'![{picture.caption}]({PAGE}/{picture.file})\n\n*{picture.caption}*\n'
        for picture in pictures
    ]
    first, *others = (table.markdown() for table in tables)
    return '\n'.join([*head, first, '## Pictures\n', *shown, *others])


def check_folder(folder: Path) -> Path:
    """
    Return a folder that can be written to, checked before anything is computed.

    :raises ConfigError: if it is a file, or its parent does not exist
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f'{folder} is a file; name a folder')
    if not folder.exists() and not folder.parent.is_dir():
        raise ConfigError(f'{folder}: there is no folder {folder.parent}; make it first')
    return folder


def write_page(
    folder: Path,
    tables: Sequence[ReportTable],
    paper: PaperTables,
    sim: Reproduction,
    command: str,
) -> Path:
    """
    Write the page and its pictures; return where it is.

    :param folder: gets ``reproduction.md`` and ``reproduction/*.png``
    :raises ConfigError: if it cannot be written
    """
    pictures = folder / PAGE
    try:
        pictures.mkdir(parents=True, exist_ok=True)
        shown = draw_pictures(pictures, paper, sim)
        page = folder / f'{PAGE}.md'
        page.write_text(page_text(tables, shown, sim, command))
    except OSError as error:
        raise ConfigError(f'{folder} cannot be written: {error.strerror}') from error
    return page


def draw_pictures(folder: Path, paper: PaperTables, sim: Reproduction) -> list[Picture]:
    """Write the pictures; return what they show."""
    found = []
    for workload, figure in (('alternating', 'table 10'), ('parcel', 'table 11')):
        file = f'attainment_{workload}.png'
        line_plot(
            folder / file,
            title=f'Attainment, {workload}',
            y_label='responses within their budget [%]',
            curves=_attainment_curves(workload, paper, sim),
            level=95.0,
        )
        caption = f'Attainment over the size of the fleet, {workload}; crosses: {figure}'
        found.append(Picture(file=file, caption=caption))
    line_plot(
        folder / 'wide_latency.png',
        title='Mean latency of the wide budget (400 ms), alternating',
        y_label='mean latency [ms]',
        curves=[
            Curve(
                name=TITLE_OF.get(policy, policy),
                style=policy,
                points={
                    case.robots: (sim.mean(case, policy, 'wide_mean_ms'),)
                    for case in _cases('alternating', paper)
                },
                published={
                    case.robots: row.wide_mean_ms[1]
                    for case, row in paper.arrival_aware.items()
                    if policy == FULL and case.workload == 'alternating'
                },
            )
            for policy in POLICIES
        ],
    )
    found.append(
        Picture(
            file='wide_latency.png',
            caption='What protection costs: mean latency of requests with a wide budget; crosses: '
            'table 9',
        )
    )
    bar_plot(
        folder / 'ablations.png',
        title='What each part of XInfer is worth',
        y_label='attainment [points]',
        groups=[str(case) for case in paper.gain],
        bars={
            name.replace('_', ' '): [
                (paper.gain[case][name], sim.gain(case, name)) for case in paper.gain
            ]
            for name in ABLATIONS
        },
    )
    caption = 'Worth of each part; bars: simulated, lines: published (table 8)'
    found.append(Picture(file='ablations.png', caption=caption))
    return found


def _cases(workload: str, paper: PaperTables) -> Iterable[FleetCase]:
    return (case for case in paper.attainment_pct if case.workload == workload)


def _attainment_curves(workload: str, paper: PaperTables, sim: Reproduction) -> list[Curve]:
    curves = []
    for policy in POLICIES:
        points = {
            case.robots: tuple(100.0 * r.attainment for r in rounds)
            for (case, variant), rounds in sorted(sim.rounds.items())
            if case.workload == workload and variant == policy
        }
        published = {
            case.robots: sum(rounds) / len(rounds)
            for case in _cases(workload, paper)
            if (rounds := paper.attainment_pct[case].get(policy))
        }
        curves.append(
            Curve(
                name=TITLE_OF.get(policy, policy),
                style=policy,
                points=points,
                published=published,
            )
        )
    return curves
