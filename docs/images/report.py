"""Photographs a report for the page about it: ``make demo``, then this with ``demo/report.html``."""

from __future__ import annotations

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
FOLDER = Path(__file__).parent


def photograph(browser: Any, name: str) -> None:
    """What the window shows, in few colours: a small file."""
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {})
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB").quantize(256)
    image.save(FOLDER / name, optimize=True)


def main(page: Path) -> None:
    """The top of the page, and the curves of an edge below its row."""
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        with webdriver.Chrome(
            options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
        ) as browser:
            size = {"width": 1180, "height": 1270, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(page.resolve().as_uri())
            photograph(browser, "report.png")
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": 720})
            browser.find_elements("css selector", "#edges tbody tr:not(.out) button")[8].click()
            photograph(browser, "report_edge.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
