# SPDX-License-Identifier: Apache-2.0
"""The command ``xinfer top``: how a fleet is served, in a terminal."""

import argparse
import sys
from typing import TYPE_CHECKING

from xinfer_ros.cli.arguments import Commands, ExampleFormatter, seconds
from xinfer_ros.cli.console import output_console
from xinfer_ros.core.clock import MonotonicClock

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from xinfer_ros.observe.terminal import Order
    from xinfer_ros.ros.top_listener import TopListener

ORDERS = ('name', 'worst', 'latency')
REFRESH_S = 0.25


def add_commands(commands: Commands) -> None:
    """Add ``top``."""
    top = commands.add_parser(
        'top',
        help='show how a running fleet is served',
        description="Shows a server's fleet status as it comes, once a second: who is late and "
        'why, latencies, queues, lanes. Works from any host of the ROS graph. Keys: s another '
        'order, q quit. Exit code 1 if nothing is heard.',
        epilog='examples:\n  xinfer top\n  xinfer top --sort worst\n'
        '  xinfer top --once | grep ERROR           # for a script\n'
        '  ROS_DOMAIN_ID=42 xinfer top               # the domain that xinfer fleet has named',
        formatter_class=ExampleFormatter,
    )
    top.add_argument('--sort', choices=ORDERS, default='name', help='which robot stands first')
    top.add_argument('--once', action='store_true', help='print once and end')
    top.add_argument(
        '--wait', type=seconds, default=10.0, help='how long --once waits for a server [s]'
    )
    top.add_argument(
        '--topic', default='/fleet/fleet_status', help='where the server publishes its status'
    )
    top.set_defaults(run=_top)


def _top(arguments: argparse.Namespace) -> int:
    from xinfer_ros.observe.terminal import Order
    from xinfer_ros.ros.top_listener import TopListener

    console, order = output_console(), Order(arguments.sort)
    listener = TopListener(arguments.topic, MonotonicClock())
    try:
        if arguments.once or not console.is_terminal:
            return _once(listener, console, order, arguments.wait)
        return _live(listener, console, order)
    finally:
        listener.close()


def _once(listener: 'TopListener', console: 'Console', order: 'Order', wait_s: float) -> int:
    from xinfer_ros.observe.terminal import fleet_screen

    heard = listener.wait(wait_s)
    if heard is None:
        print(f'xinfer: nothing heard in {wait_s:g} s: {listener.advice()}', file=sys.stderr)
        return 1
    console.print(fleet_screen(heard.status, order, age_s=0.0))
    return 0


def _live(listener: 'TopListener', console: 'Console', order: 'Order') -> int:
    from rich.live import Live

    from xinfer_ros.cli.keyboard import Keyboard

    with Keyboard() as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_screen(listener, order), refresh=True)
            match keyboard.key(REFRESH_S).lower():
                case 'q':
                    return 0
                case 's':
                    order = order.following


def _screen(listener: 'TopListener', order: 'Order') -> 'RenderableType':
    from rich.console import Group
    from rich.text import Text

    from xinfer_ros.observe.terminal import fleet_screen

    heard = listener.newest()
    if heard is None:
        return Text(f'Waiting: {listener.advice()}\nq quit')
    age_s = (MonotonicClock().now_ns() - heard.at_ns) / 1e9
    keys = Text(f's order: {order.value} · q quit', style='dim')
    return Group(fleet_screen(heard.status, order, age_s), keys)
