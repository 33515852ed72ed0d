# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer models``: what can be served, what a folder holds, whether it is right."""

import argparse

from rich.table import Table

from xinfer_ros.cli.arguments import Commands, ExampleFormatter
from xinfer_ros.cli.console import RoundProgress, output_console
from xinfer_ros.core.contract import ModelContract
from xinfer_ros.models.options import ModelOptions

TOLERANCE = 1e-5
# float32 agrees to about 1e-6; what bfloat16 leaves is printed, not judged
JUDGED = 'float32'


def add_commands(commands: Commands) -> None:
    """Add ``models`` with ``show`` and ``check``."""
    models = commands.add_parser(
        'models',
        help='show what can be served, what a checkpoint holds, and whether it is right',
        description=(
            'Without a command: every kind of model that the setting `model` can name.\n'
            'A folder is served by its path: `xinfer fleet --model FOLDER`, or `model` among the\n'
            'settings of the server, see `xinfer settings server`.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer models\n'
            '  xinfer models show ~/checkpoints/pi05_fold   # reads no weights\n'
            '  xinfer models check ~/checkpoints/pi05_fold  # reads all of them'
        ),
        formatter_class=ExampleFormatter,
    )
    models.set_defaults(run=_list)
    actions = models.add_subparsers(metavar='COMMAND')
    show = actions.add_parser(
        'show', help='contract, sizes, memory, statistics, tokenizer and prompt of a folder'
    )
    show.set_defaults(run=_show)
    check = actions.add_parser(
        'check', help='load a folder strictly; compare with oracle.npz if it lies there'
    )
    check.set_defaults(run=_check)
    for parser, dtype in ((show, 'auto'), (check, JUDGED)):
        parser.add_argument('folder', metavar='DIR', help='the folder of a checkpoint')
        parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N')
        parser.add_argument(
            '--dtype', default=dtype, choices=('auto', 'float32', 'bfloat16'),
            help=f'type of the weights, {dtype} if not given',
        )  # fmt: skip


def _list(arguments: argparse.Namespace) -> int:
    from xinfer_ros.models.catalogue import catalogue

    table = Table(title='What the setting `model` can be', title_justify='left', show_lines=True)
    for name in ('model', 'what it is', 'stages', 'cameras and sizes', 'real-time chunking'):
        table.add_column(name, overflow='fold')
    for entry in catalogue():
        table.add_row(
            entry.name,
            f'{entry.what}; see {entry.page}',
            entry.stages,
            f'{entry.cameras}\n{entry.sizes}',
            entry.rtc,
        )
    console = output_console()
    console.print(table)
    console.print(
        'A checkpoint is served by the path of its folder; nothing is fetched from a network.\n'
        '`xinfer models show DIR` tells what a folder holds and what it lacks.',
        highlight=False,
    )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from xinfer_ros.models.folder import existing_folder, family_of

    folder = existing_folder(arguments.folder)
    found = family_of(folder).report(folder, _options(arguments))
    console = output_console()
    table = Table(title=f'{found.family}: {folder}', title_justify='left', show_header=False)
    table.add_column(overflow='fold')
    table.add_column(overflow='fold')
    for name, text in (*_contract_rows(found.contract), *found.facts):
        table.add_row(name, text)
    console.print(table)
    joints = Table(title='Joints', title_justify='left')
    for name in ('joint', 'state', 'action', 'actions are'):
        joints.add_column(name, overflow='fold')
    for row in found.joints:
        joints.add_row(*row)
    console.print(joints)
    for warning in found.warnings:
        console.print(f'assumed: {warning}', highlight=False, soft_wrap=True)
    return 0


def _contract_rows(contract: ModelContract) -> tuple[tuple[str, str], ...]:
    cameras = [f'{camera.name} {camera.height}x{camera.width}' for camera in contract.cameras]
    return (
        ('cameras', ', '.join(cameras)),
        ('joints', f'{contract.action_dim}, state and actions alike'),
        ('horizon', f'{contract.horizon} rows'),
        ('largest commitment', f'{contract.max_commitment_steps} rows'),
        ('longest instruction', f'{contract.max_instruction_bytes} bytes'),
    )


def _check(arguments: argparse.Namespace) -> int:
    from xinfer_ros.models.folder import existing_folder, family_of

    folder = existing_folder(arguments.folder)
    console = output_console()
    with RoundProgress('weights', console) as progress:
        found = family_of(folder).differences(folder, _options(arguments), _Weights(progress))
    console.print(f'{folder}: every weight is there, none is surplus', soft_wrap=True)
    if not found:
        console.print('there is no oracle.npz, so no answer was compared', highlight=False)
        return 0
    judged = arguments.dtype == JUDGED
    table = Table(title='Largest difference from oracle.npz', title_justify='left')
    for name in ('check', 'requests', 'difference', 'allowed'):
        table.add_column(name)
    for row in found:
        allowed = f'{TOLERANCE:.0e}' if judged else 'any'
        table.add_row(row.check, str(row.batch), f'{row.largest:.2e}', allowed)
    console.print(table)
    return int(judged and not all(row.largest <= TOLERANCE for row in found))


class _Weights:
    """
    Turns counts of weights into a bar.

    :param progress: the bar
    """

    def __init__(self, progress: RoundProgress) -> None:
        self._progress = progress

    def __call__(self, count: int, total: int) -> None:
        """Take in how many weights have been read."""
        if count == 1:
            self._progress.starting(total)
        self._progress.done()


def _options(arguments: argparse.Namespace) -> ModelOptions:
    return ModelOptions(device=arguments.device, dtype=arguments.dtype)
