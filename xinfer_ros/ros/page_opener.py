# SPDX-License-Identifier: Apache-2.0
"""Opens the HTTP server of live page and metrics."""

import logging

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.engine.answer_router import Door
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.observe.fleet_view import FleetView
from xinfer_ros.observe.http_server import HttpServer, HttpSettings
from xinfer_ros.ros.process import share_folder

log = logging.getLogger(__name__)


class PageOpener:
    """
    Opens one for every front end, if there is to be one.

    :param config: of the server
    :param view: what it shows
    """

    def __init__(self, config: ServerConfig, view: FleetView) -> None:
        self._config, self._view = config, view

    def __call__(self, front_end: FrontEnd) -> list[Door]:
        """Return what there is to close later."""
        config = self._config
        if not config.http_port:
            return []
        try:  # only whoever serves needs it
            from xinfer_ros.observe.prometheus import prometheus_text
        except ModuleNotFoundError as error:
            log.warning('no live page and no metrics: %s; pip install "xinfer-ros[server]"', error)
            return []
        settings = HttpSettings(
            host=config.http_host,
            port=config.http_port,
            token=config.http_token,
            max_watchers=config.http_watchers,
            page=share_folder() / 'web',
        )

        def metrics(now_ns: int) -> bytes:
            return prometheus_text(self._view, now_ns, per_robot=config.metrics_per_robot)

        return [HttpServer(settings, self._view, metrics, MonotonicClock(), front_end.watch)]
