# SPDX-License-Identifier: Apache-2.0
"""
Makes the pictures of docs/live_page: ``PYTHONPATH=test .venv/bin/python -m web.pictures``.

Those of a scripted fleet, or, with the address of a page, one of the fleet that a server serves
there: ``python -m web.pictures http://127.0.0.1:8320/``.
"""

import sys
import tempfile
import urllib.request
from pathlib import Path

from observe.scripted_fleet import ScriptedFleet
from PIL import Image

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.observe.http_server import HttpServer, HttpSettings
from xinfer_ros.ros.process import share_folder

from .browser import Browser, browsing, missing

OUTPUT = Path(__file__).parents[2] / 'docs' / 'live_page'
WALL, SMALL = (1440, 900), (800, 600)
PICTURES = (
    (4, WALL, 'light'),
    (32, WALL, 'dark'),
    (4, SMALL, 'dark'),
    (32, SMALL, 'light'),
)
LIVE = OUTPUT / 'live_fleet.png'
LIVE_FRAMES = 420  # until the lanes are full: engines tell of them only while somebody watches
DEAD_S, HISTORY_S = 27, 300
COLOURS = 96


class AgedClock:
    """Runs ahead of the steady clock by as much as it is told, so that charts have a past."""

    def __init__(self) -> None:
        self._steady, self.ahead_ns = MonotonicClock(), 0

    def now_ns(self) -> int:
        """Return the present time [ns]."""
        return self._steady.now_ns() + self.ahead_ns


def main(live_url: str) -> int:
    """
    Write every picture; 1 if there is no browser.

    :param live_url: of the page of a running server, empty: of scripted fleets
    """
    if missing():
        print(missing(), file=sys.stderr)
        return 1
    OUTPUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browsing(Path(folder)) as browser:
        if live_url:
            browser.resize(*WALL)
            _shoot(browser, live_url, LIVE, frames=LIVE_FRAMES)
            return 0
        for num_robots, (width, height), scheme in PICTURES:
            browser.resize(width, height)
            browser.prefer(scheme)
            _take(browser, num_robots, OUTPUT / f'{num_robots}_robots_{width}_{scheme}.png')
    return 0


def _take(browser: Browser, num_robots: int, path: Path) -> None:
    fleet, clock = ScriptedFleet(num_robots), AgedClock()
    settings = HttpSettings(
        host='127.0.0.1', port=0, token='', max_watchers=1, page=share_folder() / 'web'
    )
    fleet.silent_since_ns['r2'] = clock.now_ns() + (HISTORY_S - DEAD_S) * 1_000_000_000
    server = HttpServer(settings, fleet, lambda now_ns: b'', clock, fleet.watch)
    url = str(server.url())
    for _ in range(HISTORY_S):
        clock.ahead_ns += 1_000_000_000
        urllib.request.urlopen(f'{url}healthz').close()  # keeps a point of the history
    _shoot(browser, f'{url}#worst' if num_robots > 8 else url, path)
    server.close()


def _shoot(browser: Browser, url: str, path: Path, frames: int = 30) -> None:
    browser.open(url)
    browser.until("document.querySelectorAll('tbody').length > 0", 'robots')
    browser.until("document.querySelectorAll('.chart canvas').length === 3", 'charts')
    browser.frames(frames)
    browser.picture(path)
    browser.open('about:blank')
    with Image.open(path) as picture:
        picture.convert('RGB').quantize(COLOURS).save(path, optimize=True)
    print(f'{path}: {path.stat().st_size // 1000} kB')


if __name__ == '__main__':
    raise SystemExit(main(*sys.argv[1:2] or ['']))
