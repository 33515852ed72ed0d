# SPDX-License-Identifier: Apache-2.0
"""The fleet as text: what the live page shows, for a terminal."""

import math
from collections.abc import Sequence
from enum import Enum

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from xinfer_ros.core.health import Level
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.observe.page_data import STAGES

COLOURS = {Level.OK: 'green', Level.WARN: 'yellow', Level.ERROR: 'red'}
PHASE_COLOURS = {ServerPhase.READY: 'green', ServerPhase.STARTING: 'yellow'}
BAR = 10
LONG_AGO_S = 3.0
MOST_TROUBLES = 8


class Order(Enum):
    """Which robot stands first."""

    NAME = 'name'
    WORST = 'worst'
    LATENCY = 'latency'

    @property
    def following(self) -> 'Order':
        """Return the next one, the first after the last."""
        orders = list(Order)
        return orders[(orders.index(self) + 1) % len(orders)]

    def sort(self, robots: Sequence[RobotStatus]) -> list[RobotStatus]:
        """Return robots in this order."""
        by_name = sorted(robots, key=lambda robot: (len(robot.robot_id), robot.robot_id))
        if self is Order.WORST:
            return sorted(by_name, key=lambda robot: (-robot.level, _or_one(robot.attainment)))
        if self is Order.LATENCY:
            return sorted(by_name, key=lambda robot: -robot.latency_p99_ns)
        return by_name


def _or_one(share: float) -> float:
    return 1.0 if math.isnan(share) else share


def fleet_screen(status: FleetStatus, order: Order, age_s: float) -> RenderableType:
    """
    Return everything there is to see.

    :param age_s: how long ago the status came [s]
    """
    parts: list[RenderableType] = [_head(status)]
    if age_s > LONG_AGO_S:
        words = f' The server is gone: no word for {age_s:.0f} s. Its last words: '
        parts.append(Text(words, style='bold white on red'))
    parts += [_totals(status), _lanes(status), *_troubles(status.robots)]
    if status.robots:
        parts.append(_robots(order.sort(status.robots)))
    else:
        parts.append(Text('no robot is registered', style='dim'))
    if status.reasons:
        counts = [f'{reason.name} {count}' for reason, count in status.reasons.most_common()]
        parts.append(Text(f'answers without a chunk: {", ".join(counts)}', style='dim'))
    return Group(*parts)


def _head(status: FleetStatus) -> Text:
    colour = PHASE_COLOURS.get(status.state, 'red')
    return Text.assemble(
        ('xinfer_ros ', 'bold'),
        (f' {status.state.name} ', f'bold reverse {colour}'),
        _plain(f'  {status.model or "no model yet"} · {status.scheduling_policy}'),
        (f' · epoch {status.epoch}', 'dim'),
    )


def _totals(status: FleetStatus) -> Text:
    registered = sum(robot.registered for robot in status.robots)
    return Text.assemble(
        'on time ',
        (_percent(status.attainment), f'bold {_share_colour(status.attainment)}'),
        f'   goodput {status.goodput_hz:.1f} of {status.responses_hz:.1f}/s',
        f'   P50 {_ms(status.latency_p50_ns)}, P99 {_ms(status.latency_p99_ns)} ms',
        f'   starved {_percent(status.starved_share, 2)}',
        f'   robots {registered}',
        f'   slots {status.slots_used}/{status.num_slots}',
    )


def _share_colour(share: float) -> str:
    if math.isnan(share):
        return 'default'
    return 'green' if share >= 0.99 else 'yellow' if share >= 0.9 else 'red'


def _lanes(status: FleetStatus) -> Text:
    text = Text()
    for name, busy, waiting in zip(STAGES, status.occupancy, status.waiting, strict=True):
        text.append(f'{name} ')
        text.append(*_bar(busy, 'cyan'))
        text.append(f' {100 * busy:3.0f} %, {waiting} wait   ')
    return text.append(f'{status.protected_requests} protected', style='dim')


def _bar(share: float, colour: str) -> tuple[str, str]:
    full = round(BAR * min(max(share, 0.0), 1.0))
    return '█' * full + '░' * (BAR - full), colour


def _troubles(robots: Sequence[RobotStatus]) -> list[Text]:
    """Return a line for each robot that needs somebody, the worst first."""
    bad = [robot for robot in Order.WORST.sort(robots) if robot.level is not Level.OK]
    lines = [
        Text(_plain(f'{robot.robot_id}: {robot.text}'), style=COLOURS[robot.level])
        for robot in bad[:MOST_TROUBLES]
    ]
    if len(bad) > MOST_TROUBLES:
        lines.append(Text(f'and {len(bad) - MOST_TROUBLES} more', style='dim'))
    return lines


def _robots(robots: Sequence[RobotStatus]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ('robot', 'level'):
        table.add_column(name, no_wrap=True)
    for name in ('on time', 'goodput', 'P50', 'P99', 'net', 'budget'):
        table.add_column(name, justify='right', no_wrap=True)
    table.add_column('queue│handoff', no_wrap=True)
    table.add_column('starved', justify='right', no_wrap=True)
    longest = max(max(robot.queued_steps, robot.commitment_steps) for robot in robots)
    for robot in robots:
        colour = COLOURS[robot.level]
        table.add_row(
            Text(
                _plain(robot.robot_id),
                style='bold' if robot.level is Level.OK else f'bold {colour}',
            ),
            Text(robot.level.name if robot.registered else 'LOST', style=colour),
            _percent(robot.attainment),
            f'{robot.goodput_hz:.1f}/s',
            _ms(robot.latency_p50_ns),
            _ms(robot.latency_p99_ns),
            _ms(robot.network_p50_ns),
            _ms(robot.budget_ns),
            _queue(robot, max(longest, 1)),
            _percent(robot.starved_share),
        )
    return table


def _queue(robot: RobotStatus, longest: int) -> Text:
    """Return the rows left as a bar; the handoff is marked behind the commitment."""
    marked = round(BAR * robot.commitment_steps / longest)
    full = round(BAR * robot.queued_steps / longest)
    short = robot.queued_steps < robot.commitment_steps
    style = 'yellow' if short else 'green'
    text = Text('█' * full + '░' * (BAR - full), style='dim')
    text.stylize(f'not dim {style}', 0, full)
    return text[:marked] + Text('│', style='bold') + text[marked:] + f' {robot.queued_steps}'


def _plain(text: str) -> str:
    """Return text of others without what would steer the terminal."""
    return ''.join(letter if letter.isprintable() else '?' for letter in text)


def _percent(share: float, digits: int = 1) -> str:
    return '–' if math.isnan(share) else f'{100 * share:.{digits}f} %'


def _ms(duration_ns: int) -> str:
    return '–' if duration_ns <= 0 else f'{duration_ns / 1e6:.{1 if duration_ns < 10e6 else 0}f}'
