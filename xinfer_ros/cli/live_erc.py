# SPDX-License-Identifier: Apache-2.0
"""The search for the capacity of live servers, one a scheduling policy."""

import argparse
from collections.abc import Sequence

from xinfer_ros.cli.console import StatusLine
from xinfer_ros.cli.live import LogLines
from xinfer_ros.cli.load import live_plan, live_run, live_server, live_workload
from xinfer_ros.core.clock import Clock
from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.bench_system import BenchFailedError
from xinfer_ros.fleet.criterion import Criterion
from xinfer_ros.fleet.live_rounds import LiveSearch
from xinfer_ros.fleet.records import ErcRecord, RoundRecord
from xinfer_ros.fleet.simulation_table import population_line


class LiveErc:
    """
    Searches on live servers.

    :param arguments: of the command line
    :param seeds: of the rounds of each fleet
    :param criterion: what every round must meet
    :param clock: the steady clock
    :param log: takes what the processes say
    :raises ConfigError: if an argument is wrong
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        seeds: tuple[int, ...],
        criterion: Criterion,
        clock: Clock,
        log: LogLines,
    ) -> None:
        self._arguments, self._criterion = arguments, criterion
        self._clock, self._log = clock, log
        self._plan = live_plan(
            arguments,
            robots=(arguments.max_robots,),
            seeds=seeds,
            workload=live_workload(arguments.workload),
            warm_up_s=arguments.warm_up,
            duration_s=arguments.end - arguments.warm_up,
        )
        self._run = live_run(self._plan, arguments, clock, log)

    def run(
        self, policies: Sequence[str], rounds: list[RoundRecord], status: StatusLine
    ) -> tuple[list[ErcRecord], list[str]]:
        """
        Search under each policy; return what was found, and why something was not.

        :param rounds: gets every round that was measured
        :raises ConfigError: if a setting is wrong
        """
        if self._arguments.attach and len(policies) > 1:
            raise ConfigError('a server that runs has one scheduling policy; name one, or none')
        found, failures = [], []
        for policy in policies:
            try:
                found.append(self._search(policy, rounds, status))
            except BenchFailedError as error:
                failures.append(f'{policy}: {error}')
        return found, failures

    def _search(self, policy: str, rounds: list[RoundRecord], status: StatusLine) -> ErcRecord:
        arguments, most = self._arguments, self._arguments.max_robots
        search = LiveSearch(
            policy=policy, plan=self._plan, criterion=self._criterion, max_robots=most
        )
        changes = (
            {}
            if arguments.attach
            else {'scheduling_policy': policy, 'policy_settings': list(arguments.changes)}
        )
        server = live_server(arguments, most, changes, self._clock, self._log)

        def tell(
            name: str, robots: int, measured: Sequence[RoundRecord], faults: Sequence[str]
        ) -> None:
            rounds.extend(measured)
            status.say(population_line(name, robots, measured, faults))

        status.step(f'starting a server under {policy}')
        try:
            server.start()
            return search.run(
                lambda robots, seed: self._run.measure(server, robots, seed, status.tell), tell
            )
        except BenchFailedError:
            self._log.print_kept()
            raise
        finally:
            server.close()
