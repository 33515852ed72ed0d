# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer episodes``: what recordings hold, in other formats, and as budgets."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.errors import ConfigError

if TYPE_CHECKING:
    from xinfer_ros.episodes.budgets import BudgetRule
    from xinfer_ros.episodes.episode import Episode
    from xinfer_ros.episodes.sources import EpisodeReference
    from xinfer_ros.fleet.episode_report import PlannedEpisode

_FORMATS = ('rosbag2', 'lerobot', 'hdf5')
_READABLE = (
    'PATH is a rosbag2 folder or file (MCAP, sqlite3; compressed, cut short, without metadata),\n'
    'a LeRobot data set (v2.x, v3.x), an ALOHA-style HDF5 file, a folder of these, one episode\n'
    'of several as PATH#NAME, or the name of a shipped episode.'
)


def add_commands(commands: Commands) -> None:
    """Add ``episodes`` with ``info``, ``convert`` and ``budgets``."""
    episodes = commands.add_parser(
        'episodes',
        help='show what recordings hold, convert them, and make workloads of them',
        description='Reads recordings of robots.\n' + _READABLE,
        epilog=(
            'examples:\n'
            '  xinfer episodes info transfer_cube_0\n'
            '  xinfer episodes convert transfer_cube_0 cube.hdf5 --to hdf5\n'
            '  xinfer episodes budgets recordings/ --output mine.json --plot mine.png\n'
            '  xinfer sim --workload trace:mine.json            # a fleet that plays them\n'
            '  xinfer fleet --bags recordings/                  # and one on real processes'
        ),
        formatter_class=ExampleFormatter,
    )
    actions = episodes.add_subparsers(metavar='COMMAND', required=True)
    _add_info(actions)
    _add_convert(actions)
    _add_budgets(actions)


def _add_info(actions: Commands) -> None:
    parser = actions.add_parser(
        'info',
        help='cameras, joints, rates, gaps, gripper switches, contact',
        description=(
            'Shows what recordings hold. A recording may have lost frames before anyone could\n'
            "read it: the gaps between a camera's own stamps tell how many.\n" + _READABLE
        ),
        epilog=(
            'examples:\n'
            '  xinfer episodes info transfer_cube_0 transfer_cube_1\n'
            '  xinfer episodes info ~/datasets/fold_towel#12 --json towel.json\n'
            '  xinfer episodes info bag --contact left_gripper=2.5 right_gripper=2.5'
        ),
        formatter_class=ExampleFormatter,
    )
    _add_paths(parser)
    parser.add_argument(
        '--contact', nargs='+', default=[], metavar='JOINT=EFFORT',
        help='effort at which contact begins; without it, half of the largest of each gripper',
    )  # fmt: skip
    parser.add_argument(
        '--json', type=file_path, default=None, metavar='FILE.json',
        help='write the same as a JSON list under "episodes"',
    )  # fmt: skip
    parser.set_defaults(run=_info)


def _add_convert(actions: Commands) -> None:
    parser = actions.add_parser(
        'convert',
        help='write episodes in another format',
        description=(
            'Writes episodes in another format; nothing is ever overwritten.\n'
            '  rosbag2  a bag an episode (MCAP, zstd); pictures stay as they are\n'
            '  lerobot  one data set (v3.0) of all; even spacing, pictures as H.264\n'
            '  hdf5     a file an episode, as ALOHA records it; JPEG stays JPEG\n'
            'Several episodes become a folder of bags or files.\n' + _READABLE
        ),
        epilog=(
            'examples:\n'
            '  xinfer episodes convert bag fold_towel --to lerobot\n'
            '  xinfer episodes convert ~/datasets/fold_towel bags --to rosbag2   # one bag each\n'
            '  xinfer episodes convert ~/datasets/fold_towel#12 twelve.hdf5 --to hdf5'
        ),
        formatter_class=ExampleFormatter,
    )
    parser.add_argument('source', metavar='IN', help='what is converted, see above')
    parser.add_argument('target', metavar='OUT', type=file_path, help='the file or folder to make')
    parser.add_argument('--to', choices=_FORMATS, required=True, help='the format wanted')
    parser.set_defaults(run=_convert)


def _add_budgets(actions: Commands) -> None:
    parser = actions.add_parser(
        'budgets',
        help='make response budgets of gripper switches: a workload',
        description=(
            'Makes the budget sequence of each episode: the response budget is tight around each\n'
            'switch of a gripper and wide elsewhere, in whole responses. Switches are taken from\n'
            'what grippers were told, or from what they measured if they were told nothing.\n'
            + _READABLE
        ),
        epilog=(
            'examples:\n'
            '  xinfer episodes budgets transfer_cube_0\n'
            '  xinfer episodes budgets recordings/ --output mine.json --plot mine.png\n'
            '  xinfer sim --workload trace:mine.json --robots 16'
        ),
        formatter_class=ExampleFormatter,
    )
    _add_paths(parser)
    for option, default, words in (
        ('--period-ms', 180.0, 'time between two responses [ms]'),
        ('--tight-ms', 90.0, 'response budget near a switch [ms]'),
        ('--wide-ms', 400.0, 'response budget elsewhere [ms]'),
        ('--before', 1.0, 'what is near before a switch [s]'),
        ('--after', 0.5, 'what is near after a switch [s]'),
    ):
        parser.add_argument(option, type=float, default=default, help=words, metavar='X')
    parser.add_argument(
        '--output', type=file_path, default=None, metavar='FILE.json',
        help='write the sequences; xinfer sim --workload trace:FILE.json plays them',
    )  # fmt: skip
    parser.add_argument(
        '--plot', type=file_path, default=None, metavar='FILE.png',
        help='draw when the budget of each episode is tight',
    )  # fmt: skip
    parser.set_defaults(run=_budgets)


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('paths', nargs='+', metavar='PATH', help='what is read, see above')
    parser.add_argument(
        '--grippers', default='', metavar='JOINT[,JOINT]',
        help='joints that are grippers; without it, those with gripper, finger or jaw in the name',
    )  # fmt: skip


def _info(arguments: argparse.Namespace) -> int:
    from xinfer_ros.episodes.summary import summary
    from xinfer_ros.fleet.episode_report import cameras_table, episodes_table, switches_line
    from xinfer_ros.fleet.records import output_files, write_lists

    output_files(arguments.json, None)
    thresholds = _thresholds(arguments.contact)
    found = []
    console = output_console()
    with RoundProgress('messages', console) as progress:
        for reference in _references(arguments.paths):
            episode = _chosen(reference.read(_Steps(progress)), arguments.grippers)
            _known('--contact', tuple(thresholds), episode)
            found.append(summary(episode, reference.reader.format, thresholds))
    console.print(episodes_table(found).rich())
    if any(one.cameras for one in found):
        console.print(cameras_table(found).rich())
    for joints in dict.fromkeys(one.joints for one in found):
        console.print(f'joints: {", ".join(joints)}', highlight=False, soft_wrap=True)
    for one in found:
        console.print(switches_line(one), highlight=False, soft_wrap=True)
        for warning in one.warnings:
            console.print(
                f'{one.name}: {warning}', style='yellow', highlight=False, soft_wrap=True
            )
    if arguments.json is not None:
        write_lists(arguments.json, episodes=found)
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    from xinfer_ros.episodes.conversion import convert, make_writer

    console = output_console()
    references = _references([arguments.source])
    with RoundProgress(arguments.target.name, console) as bar:
        made = convert(
            references, arguments.target, make_writer(arguments.to), lambda name: _Steps(bar)
        )
    for path in made:
        console.print(f'written: {path}', highlight=False, soft_wrap=True)
    return 0


def _budgets(arguments: argparse.Namespace) -> int:
    from xinfer_ros.core.budget_sequence import BudgetSequences
    from xinfer_ros.fleet.episode_report import budgets_plot, budgets_table
    from xinfer_ros.fleet.records import output_files

    output_files(arguments.output, arguments.plot)
    if arguments.output is not None and arguments.output.exists():
        raise ConfigError(f'{arguments.output} exists, and nothing is overwritten; name another')
    rule = _rule(arguments)
    console = output_console()
    with RoundProgress('messages', console) as progress:
        planned = [
            _planned(_chosen(reference.read(_Steps(progress)), arguments.grippers), rule)
            for reference in _references(arguments.paths)
        ]
    console.print(budgets_table(planned, rule).rich())
    if arguments.output is not None:
        sequences = BudgetSequences(
            about=f'xinfer episodes budgets {" ".join(arguments.paths)}',
            period_ms=rule.period_ms,
            sequences=tuple(one.sequence for one in planned),
        )
        arguments.output.write_text(sequences.text())
    if arguments.plot is not None:
        budgets_plot(arguments.plot, planned, rule)
    return 0


def _rule(arguments: argparse.Namespace) -> 'BudgetRule':
    from xinfer_ros.episodes.budgets import BudgetRule

    return BudgetRule(
        period_ms=arguments.period_ms,
        tight_ms=arguments.tight_ms,
        wide_ms=arguments.wide_ms,
        before_s=arguments.before,
        after_s=arguments.after,
    )


def _planned(episode: 'Episode', rule: 'BudgetRule') -> 'PlannedEpisode':
    from xinfer_ros.episodes.budgets import budget_sequence, tight_intervals
    from xinfer_ros.episodes.grippers import gripper_switches
    from xinfer_ros.fleet.episode_report import PlannedEpisode

    sequence, switches = budget_sequence(episode, rule), gripper_switches(episode)
    times_ns = [switch.time_ns for switch in switches]
    intervals = tight_intervals(times_ns, episode.duration_ns, rule)
    return PlannedEpisode(sequence=sequence, switches=switches, intervals=intervals)


class _Steps:
    """
    Turns counts of what is done into a bar.

    :param bar: the bar
    """

    def __init__(self, bar: RoundProgress) -> None:
        self._bar, self._done, self._total = bar, 0, 0

    def __call__(self, done: int, total: int) -> None:
        self._bar.starting(total - self._total)
        for _ in range(done - self._done):
            self._bar.done()
        self._done, self._total = done, total


def _references(paths: Sequence[str]) -> 'Sequence[EpisodeReference]':
    from xinfer_ros.episodes.sources import all_episodes
    from xinfer_ros.ros.process import share_folder

    try:
        shipped = share_folder() / 'episodes'
    except ConfigError:  # not installed, so nothing is shipped
        shipped = Path()
    return all_episodes(paths, shipped)


def _chosen(episode: 'Episode', grippers: str) -> 'Episode':
    """Return an episode with the grippers that the user has named."""
    if not grippers:
        return episode
    names = tuple(name.strip() for name in grippers.split(','))
    _known('--grippers', names, episode)
    return replace(episode, grippers=names)


def _known(option: str, names: Sequence[str], episode: 'Episode') -> None:
    unknown = [name for name in names if name not in episode.joints]
    if unknown:
        raise ConfigError(
            f'{option} {", ".join(unknown)}: episode {episode.name} has the joints '
            f'{", ".join(episode.joints)}'
        )


def _thresholds(pairs: Sequence[str]) -> dict[str, float]:
    found = {}
    for pair in pairs:
        joint, _, text = pair.partition('=')
        try:
            found[joint] = float(text)
        except ValueError:
            found[joint] = 0.0
        if not joint or not found[joint] > 0:
            raise ConfigError(f'--contact {pair}: JOINT=EFFORT is needed, the effort above 0')
    return found
