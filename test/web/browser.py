# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a window, driven by its chromedriver."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER, DRIVER = '/usr/bin/chromium', '/usr/bin/chromedriver'
MISSING = (
    f'{BROWSER} or {DRIVER} is missing; apt-get install --no-install-recommends chromium '
    'chromium-driver has both'
)
# no call to anybody: neither for updates, nor for lists of any kind
SILENT = (
    '--headless=new', '--disable-gpu', '--disable-dev-shm-usage', '--disable-extensions',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--no-first-run', '--no-proxy-server',
    '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
)  # fmt: skip
WAIT_S = 30


class Browser:
    """
    One window.

    :param driver: of selenium
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def open(self, url: str) -> None:
        """Show a page."""
        self._driver.get(url)

    def resize(self, width: int, height: int) -> None:
        """Give the page exactly this size."""
        size = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False}
        self._driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``."""
        feature = {'name': 'prefers-color-scheme', 'value': scheme}
        self._driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [feature]})

    def until(self, expression: str, what: str) -> Any:
        """Return a value of JavaScript as soon as it is true; fail when that takes too long."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.wait import WebDriverWait

        try:
            wait = WebDriverWait(self._driver, WAIT_S, poll_frequency=0.1)
            return wait.until(lambda driver: driver.execute_script(f'return {expression}'))
        except TimeoutException:
            shown = self.text('body')
            raise AssertionError(f'not within {WAIT_S} s: {what}\n{shown}') from None

    def value(self, expression: str) -> Any:
        """Return a value of JavaScript."""
        return self._driver.execute_script(f'return {expression}')

    def frames(self, count: int) -> None:
        """Return when the page has been drawn so many times."""
        script = 'let left = arguments[0]; const done = arguments[1];'
        script += 'const frame = () => (left-- > 0 ? requestAnimationFrame(frame) : done(true));'
        self._driver.execute_async_script(f'{script} frame();', count)

    def text(self, selector: str) -> str:
        """Return the text of the first element of a kind."""
        return str(self.value(f'document.querySelector({selector!r}).innerText'))

    def click(self, selector: str) -> None:
        """Click on the first element of a kind."""
        self._driver.find_element('css selector', selector).click()

    def point_at(self, selector: str, x: int, y: int) -> None:
        """Move the pointer to a place relative to the middle of an element."""
        from selenium.webdriver import ActionChains

        target = self._driver.find_element('css selector', selector)
        ActionChains(self._driver).move_to_element_with_offset(target, x, y).perform()

    def complaints(self) -> list[str]:
        """Return what the console has said since the last call."""
        return [entry['message'] for entry in self._driver.get_log('browser')]

    def picture(self, path: Path) -> None:
        """Save what is seen as a PNG."""
        assert self._driver.save_screenshot(str(path))


def missing() -> str:
    """Return why there is no browser, empty if there is one."""
    return '' if shutil.which(BROWSER) and shutil.which(DRIVER) else MISSING


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """
    Give a browser; at the end it is gone.

    :param folder: where it keeps its profile
    """
    webdriver = pytest.importorskip('selenium.webdriver', reason='no selenium')
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*SILENT, f'--user-data-dir={folder / "profile"}'):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument('--no-sandbox')  # which needs another user than root
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
