"""Chromium for tests, driven by WebDriver: headless, with a fresh profile, and everything it says written down.

``MARKOVBLANKET_BROWSER=required`` turns a missing browser from a reason to skip into a failure.
``MARKOVBLANKET_SCREENSHOTS`` names a folder for pictures of what was seen.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def absent(reason: str) -> None:
    """Skip, or fail where a browser is required."""
    if os.environ.get("MARKOVBLANKET_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser that logs its console and its requests."""
    program, driver = next(filter(None, map(shutil.which, PROGRAMS)), None), shutil.which("chromedriver")
    if program is None or driver is None:
        absent("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        absent("needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


def opened(browser: Any, page: Path, width: int = 1280, height: int = 900) -> Any:
    """The page from disk, at a size, with the log empty before."""
    resize(browser, width, height)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.resolve().as_uri())
    return browser


def resize(browser: Any, width: int, height: int) -> None:
    """The size of the page itself, which may be narrower than a window can be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@contextmanager
def on_paper(browser: Any) -> Iterator[None]:
    """The page as it is printed, as wide as A4 at 96 dots per inch."""
    resize(browser, 794, 1123)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def requests(browser: Any) -> list[str]:
    """Addresses that were asked for since the page was opened."""
    said = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [one["params"]["request"]["url"] for one in said if one["method"] == "Network.requestWillBeSent"]


def picture(browser: Any, name: str, *, whole: bool = True) -> None:
    """A screenshot, if there is a folder for it."""
    folder = os.environ.get("MARKOVBLANKET_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
        Path(folder, name).write_bytes(base64.b64decode(shot["data"]))
