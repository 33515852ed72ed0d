# SPDX-License-Identifier: Apache-2.0
"""What each mechanism of the engine gains: the same robots with switches off and on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import Clock
from xinfer_ros.engine.closed_loop import ClosedLoop, Window
from xinfer_ros.errors import ConfigError

# of each switch: its setting, and the value that turns the mechanism on
SWITCHES = {
    'C': ('overlap_preparation', True, 'pictures are prepared while the device computes'),
    'M': ('stage_concurrency', True, 'several units of a stage at once, and batches'),
    'R': ('round_barrier', False, 'no common round: each request advances by itself'),
    'G': ('stage_overlap', True, 'units of different stages run at once'),
}
OFF = 'off'
STEPS = (OFF, 'C', 'C+M', 'C+M+R+G')  # as in figure 9 of XInfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    What one combination of switches gave.

    :param name: the mechanisms that are on, ``off`` for none
    :param per_s: answers per second of each window [1/s]
    :param latency_ms: median, 90 % and 99 % of all answers [ms]
    """

    name: str
    per_s: tuple[float, ...]
    latency_ms: tuple[float, float, float]

    def gain_over(self, base: 'Variant') -> tuple[float, float, float]:
        """Return least, median and largest ratio of the windows that were run in turn."""
        ratios = [ours / theirs for ours, theirs in zip(self.per_s, base.per_s, strict=True)]
        return min(ratios), float(np.median(ratios)), max(ratios)


def switched(config: ServerConfig, name: str) -> ServerConfig:
    """
    Return settings with some mechanisms on and the others off.

    :param name: letters with ``+`` between, or ``off``
    :raises ConfigError: if a letter is not known
    """
    letters = [] if name == OFF else name.upper().split('+')
    for letter in letters:
        if letter not in SWITCHES:
            raise ConfigError(
                f'switch {letter!r} of variant {name!r} is not known; '
                f'{", ".join(SWITCHES)} with + between, or {OFF}'
            )
    values: dict[str, Any] = {
        key: on is (letter in letters) for letter, (key, on, _) in SWITCHES.items()
    }
    return replace(config, **values)


def ablate(
    config: ServerConfig,
    names: Sequence[str],
    *,
    num_robots: int,
    window_s: float,
    rounds: int,
    clock: Clock,
    done: Callable[[], None] = lambda: None,
) -> list[Variant]:
    """
    Run one engine a variant, and let the robots ask them in turn.

    The engines wait idle beside the one that is asked, so that whatever else happens on the
    machine for a while meets all variants alike. The first round does not count.

    :param config: of the server, the switches apart
    :param names: of the variants
    :param window_s: for how long robots ask in one window [s]
    :param rounds: windows of each variant that count
    :param done: called after each window
    :raises ModelError: if an engine does not start, or a request fails
    """
    loops: dict[str, ClosedLoop] = {}
    found: dict[str, list[Window]] = {name: [] for name in names}
    try:
        for name in names:
            loops[name] = ClosedLoop(switched(config, name), num_robots, clock)
        for number in range(rounds + 1):
            for name, loop in loops.items():
                window = loop.run(window_s)
                if number > 0:
                    found[name].append(window)
                done()
    finally:
        for loop in loops.values():
            loop.close()
    return [_variant(name, windows) for name, windows in found.items()]


def _variant(name: str, windows: Sequence[Window]) -> Variant:
    latency_ms = np.concatenate([np.array(window.latency_ns) for window in windows]) / 1e6
    middle, high, highest = np.percentile(latency_ms, (50, 90, 99))
    return Variant(
        name=name,
        per_s=tuple(window.per_s for window in windows),
        latency_ms=(float(middle), float(high), float(highest)),
    )
