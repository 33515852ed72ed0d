# SPDX-License-Identifier: Apache-2.0
"""Who is connected to a port."""

import asyncio

from xinfer_ros.core.callers import SILENT_NS, Callers
from xinfer_ros.core.clock import SimulatedClock


class Line(asyncio.BaseProtocol):
    """A connection of the port below."""

    def __init__(self, port: 'Port') -> None:
        self._port = port
        self.protocol = self  # as a request has it

    def force_close(self) -> None:
        """Hang up."""
        self._port.connections.remove(self)


class Port:
    """Makes connections and keeps those that are open."""

    def __init__(self) -> None:
        self.connections: list[Line] = []

    def __call__(self) -> Line:
        """Return a new one."""
        self.connections.append(Line(self))
        return self.connections[-1]


def port_of(most: int) -> tuple[Port, Callers, SimulatedClock]:
    port, clock = Port(), SimulatedClock()
    return port, Callers(lambda: port, most, clock), clock


def test_no_more_than_are_allowed_are_connected() -> None:
    port, callers, _ = port_of(2)
    made = [callers() for _ in range(3)]
    assert [isinstance(each, Line) for each in made] == [True, True, False]
    assert len(port.connections) == 2


def test_who_only_keeps_a_place_goes_when_the_port_is_full() -> None:
    port, callers, clock = port_of(2)
    asking = callers()
    assert isinstance(asking, Line)
    asyncio.run(callers.heard(asking, None))
    callers()
    clock.advance(SILENT_NS)
    assert not isinstance(callers(), Line)
    assert len(port.connections) == 2
    clock.advance(1)
    assert not isinstance(callers(), Line)
    assert port.connections == [asking]
    assert isinstance(callers(), Line)


def test_who_is_silent_stays_while_there_is_room() -> None:
    port, callers, clock = port_of(3)
    for _ in range(2):
        callers()
        clock.advance(10 * SILENT_NS)
    assert len(port.connections) == 2
