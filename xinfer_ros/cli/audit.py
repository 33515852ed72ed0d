# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer audit``: how good the predictions of a recorded run were."""

import argparse

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, file_path
from xinfer_ros.cli.console import output_console
from xinfer_ros.cli.decision_log import add_log, open_log
from xinfer_ros.errors import ConfigError

LEARNING_RATE = 0.02  # that of the default scheduling policy


def add_commands(commands: Commands) -> None:
    """Add ``audit``."""
    parser = commands.add_parser(
        'audit',
        help='replay a recorded run and compare every predicted stage time with the truth',
        description=(
            'Replays every start and end of a unit in a decision log, and predicts at\n'
            'each of them, from nothing that came later, how long each running unit still needs.\n'
            'Shown are the errors by stage: their size, their sign, in share of the stage time,\n'
            'and with every request counted once; by the calibration alone (table) and with the\n'
            'online correction that a scheduler may apply (corrected).\n'
            'Units that failed or never ended are left out and counted.\n'
            'If the table has a bias, the device is not what was calibrated: xinfer calibrate.'
        ),
        epilog=(
            'examples:\n'
            '  xinfer audit decisions\n'
            '  xinfer audit decisions --json errors.json --plot errors.png\n'
            '  xinfer audit decisions --calibration new.json     # would another do better?\n\n'
            'A server writes a decision log with the setting decision_log: FOLDER.'
        ),
        formatter_class=ExampleFormatter,
    )
    add_log(parser)
    parser.add_argument(
        '--calibration', default='', metavar='NAME|FILE',
        help="predict by another calibration than the run's own",
    )  # fmt: skip
    parser.add_argument(
        '--learning-rate', type=float, default=LEARNING_RATE, metavar='X',
        help='of the online correction, above 0 to 1',
    )  # fmt: skip
    parser.add_argument(
        '--json', type=file_path, default=None, metavar='FILE.json',
        help='write the errors as lists of records: table, corrected, left_out',
    )  # fmt: skip
    parser.add_argument(
        '--plot', type=file_path, default=None, metavar='FILE.png',
        help='draw the errors over time, and how often each size is',
    )  # fmt: skip
    parser.set_defaults(run=_audit)


def _audit(arguments: argparse.Namespace) -> int:
    from xinfer_ros.fleet.audit_report import audit_plot, errors_table, left_out_line
    from xinfer_ros.fleet.logged_run import recorded_run
    from xinfer_ros.fleet.records import output_files, write_lists
    from xinfer_ros.predict.audit import audit
    from xinfer_ros.predict.calibration import load_calibration
    from xinfer_ros.predict.error_summary import summaries

    if not 0.0 < arguments.learning_rate <= 1.0:
        raise ConfigError(f'--learning-rate is {arguments.learning_rate}; above 0, up to 1')
    output_files(arguments.json, arguments.plot)
    console = output_console()
    run = recorded_run(open_log(arguments, console))
    calibration = run.calibration
    if arguments.calibration:
        calibration = load_calibration(arguments.calibration)
        run.check_sizes(calibration)
    rates = {'table': 0.0, 'corrected': arguments.learning_rate}
    audits = {
        kind: audit(run.transitions, calibration, learning_rate=rate, from_ns=run.from_ns)
        for kind, rate in rates.items()
    }
    if not len(audits['table'].error_ms):
        raise ConfigError(f'{arguments.log} holds no unit that was seen to start and to end')
    found = {kind: summaries(each, run.members) for kind, each in audits.items()}
    facts, seconds = run.facts, (run.transitions[-1, 0] - run.from_ns) / 1e9
    title = (
        f'{facts.model} under {facts.policy}, {facts.date}, {seconds:.0f} s, calibration '
        f'{calibration.name} of {calibration.device}'
    )
    console.print(errors_table(title, found).rich())
    console.print(left_out_line(audits['table'].left_out), highlight=False, soft_wrap=True)
    if arguments.json is not None:
        write_lists(arguments.json, **found, left_out=[audits['table'].left_out])
    if arguments.plot is not None:
        audit_plot(arguments.plot, title, audits)
    return 0
