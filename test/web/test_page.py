# SPDX-License-Identifier: Apache-2.0
"""The live page in a browser, of a fleet that behaves as told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip('aiohttp', reason='no aiohttp: extra server is not installed')
pytest.importorskip('selenium', reason='no selenium: requirements/dev.txt has it')

from observe.scripted_fleet import LATE_TEXT, ScriptedFleet

from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.health import Level
from xinfer_ros.observe.http_server import HttpServer, HttpSettings

from .browser import Browser

LONG_AGO_NS = 20_000_000_000
ROBOTS = "[...document.querySelectorAll('tbody')].map((body) => body.dataset.robot)"


def of(robot: str, inside: str = '') -> str:
    return f'document.querySelector(\'tbody[data-robot="{robot}"] {inside}\')'


def serve(fleet: ScriptedFleet, page: Path, port: int = 0) -> HttpServer:
    settings = HttpSettings(host='127.0.0.1', port=port, token='', max_watchers=4, page=page)
    return HttpServer(settings, fleet, lambda now_ns: b'', MonotonicClock(), fleet.watch)


@contextmanager
def other_site(url: str) -> Iterator[str]:
    """Give the address of a page that links to ours, and tells in its title what it can read."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header('Content-Type', 'text/html')
            self.end_headers()
            script = f"fetch('{url}snapshot.json', {{ mode: 'no-cors' }}).then("
            script += "() => { document.title = 'read'; }, () => { document.title = 'refused'; })"
            self.wfile.write(f'<a href="{url}">a</a><script>{script}</script>'.encode())

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(('127.0.0.1', 0), Page) as site:
        threading.Thread(target=site.serve_forever).start()
        yield f'http://127.0.0.1:{site.server_port}/'
        site.shutdown()


@pytest.fixture
def fleet() -> ScriptedFleet:
    return ScriptedFleet(4)


@pytest.fixture
def url(browser: Browser, fleet: ScriptedFleet, page: Path) -> Iterator[str]:
    server = serve(fleet, page)
    try:
        yield str(server.url())
    finally:
        browser.open('about:blank')
        server.close()


def kill(fleet: ScriptedFleet, robot: str) -> None:
    fleet.silent_since_ns[robot] = MonotonicClock().now_ns() - LONG_AGO_NS


def test_the_page_starts_and_fills_and_the_console_is_silent(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.until(f'{ROBOTS}.length === 4', 'a row for each robot')
    assert browser.value(ROBOTS) == ['r0', 'r1', 'r2', 'r3']
    assert browser.text('#state') == 'READY'
    assert browser.text('#attainment').endswith(' %')
    assert browser.text('tbody[data-robot="r3"] .chip') == 'WARN'
    assert browser.text('tbody[data-robot="r3"] .why') == LATE_TEXT
    assert 'tiny · foresight' in browser.text('#what')
    assert 'request 5130 waits' in browser.text('#reasons')
    assert browser.complaints() == []


def test_charts_are_drawn(browser: Browser, url: str, page: Path) -> None:
    if not (page / 'vendor').is_dir():
        pytest.skip('the build has no charting library: npm was missing')
    browser.open(url)
    browser.until("document.querySelectorAll('.chart canvas').length === 3", 'three charts')
    assert browser.complaints() == []


def test_a_robot_that_dies_turns_red_and_comes_first_on_demand(
    browser: Browser, fleet: ScriptedFleet, url: str
) -> None:
    browser.open(url)
    browser.until(f"{of('r2')}?.dataset.level === 'OK'", 'r2 is well')
    kill(fleet, 'r2')
    browser.until(f"{of('r2')}.dataset.level === 'ERROR'", 'r2 is in trouble')
    assert browser.text('tbody[data-robot="r2"] .chip') == 'LOST'
    red = browser.value(f'getComputedStyle({of("r2", "td.robot")}).color')
    assert red == 'rgb(194, 32, 44)'
    assert 'in trouble: r1, r2' in browser.text('#attention')
    browser.click('#sort')
    assert browser.value(ROBOTS) == ['r1', 'r2', 'r3', 'r0']
    assert browser.complaints() == []


def test_what_ails_the_server_stands_first(
    browser: Browser, fleet: ScriptedFleet, url: str
) -> None:
    fleet.level, fleet.text = Level.WARN, 'the device is full: take robots off'
    browser.open(url)
    browser.until(f'{ROBOTS}.length === 4', 'every row')
    assert browser.text('#attention').startswith('server: the device is full: take robots off')
    assert browser.value("document.getElementById('state').dataset.level") == 'WARN'


def test_a_link_on_another_site_opens_the_page_whose_data_that_site_does_not_get(
    browser: Browser, url: str
) -> None:
    """SE-02: as from a wiki or a dashboard; read by a script there, it is refused."""
    with other_site(url) as other:
        browser.open(other)
        browser.until("document.title === 'refused'", 'its script has asked for our data')
        browser.click('a')
        browser.until(f'{ROBOTS}.length === 4', 'every row')
    browser.complaints()  # of what was refused


def test_names_and_reasons_are_text_and_never_html(
    browser: Browser, fleet: ScriptedFleet, url: str
) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    fleet.names.append(evil)
    browser.open(url)
    browser.until(f'{ROBOTS}.length === 5', 'every row')
    assert evil in browser.value(ROBOTS)
    assert evil in browser.text('#reasons')
    assert browser.value("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


def test_a_unit_tells_its_robots_when_pointed_at(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.until(f'{ROBOTS}.length === 4', 'every row')
    browser.point_at('#canvas', 0, 35)
    tip = browser.until(
        "!document.getElementById('tip').hidden && document.getElementById('tip').textContent",
        'a unit of Action passes below the pointer',
    )
    assert '(request ' in tip
    assert tip.endswith(' ms')


def test_a_server_that_goes_is_told_and_found_again(
    browser: Browser, fleet: ScriptedFleet, page: Path
) -> None:
    server = serve(fleet, page)
    url = str(server.url())
    browser.open(url)
    browser.until(f'{ROBOTS}.length === 4', 'every row')
    server.close()
    gone = "document.getElementById('connection')"
    browser.until(f'!{gone}.hidden', 'a banner')
    assert 'The server is gone: no word since ' in browser.text('#connection')
    assert browser.value("document.body.classList.contains('stale')")
    fleet.names.append('r4')
    again = serve(fleet, page, int(url.rstrip('/').rpartition(':')[2]))
    browser.until(f'{gone}.hidden && {ROBOTS}.length === 5', 'the page is back')
    again.close()
    browser.open('about:blank')
    browser.complaints()  # of the time without a server


def test_without_the_charting_library_tables_and_lanes_work(
    browser: Browser, fleet: ScriptedFleet, page: Path, tmp_path: Path
) -> None:
    bare = tmp_path / 'web'
    bare.mkdir()
    for path in page.iterdir():
        if path.is_file():
            (bare / path.name).write_bytes(path.read_bytes())
    server = serve(fleet, bare)
    browser.open(str(server.url()))
    browser.until(f'{ROBOTS}.length === 4', 'every row')
    assert 'npm was not there' in browser.text('#no-charts')
    assert browser.text('#lane-names').startswith('ViT')
    server.close()
    browser.open('about:blank')
    browser.complaints()  # of the files that are missing


@pytest.mark.parametrize(
    ('scheme', 'colour'), [('dark', 'rgb(14, 19, 26)'), ('light', 'rgb(243, 245, 248)')]
)
def test_the_page_is_as_dark_as_its_visitor_likes(
    browser: Browser, url: str, scheme: str, colour: str
) -> None:
    browser.prefer(scheme)
    browser.open(url)
    assert browser.value('getComputedStyle(document.body).backgroundColor') == colour
