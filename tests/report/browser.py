"""A real browser without a window, with a profile of its own."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A driven browser; the test is skipped where there is none."""
    driver = shutil.which("chromedriver")
    binary = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if driver is None or binary is None:
        pytest.skip("no browser to test in: needs the packages chromium and chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driven = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield driven
    finally:
        driven.quit()


def open_page(driven: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
    """Open a file in a window of this width, in light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driven.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # A page that scrolls smoothly would still be on its way when it is clicked.
    media = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    wanted = {"features": [{"name": name, "value": value} for name, value in media.items()]}
    driven.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    driven.get("about:blank")
    driven.get_log("browser")
    driven.get(file.as_uri())
    wait_for(driven, "return document.querySelectorAll('#map-chart svg, #map-chart p').length > 0")


def wait_for(driven: Any, condition: str, *arguments: Any) -> Any:
    """The result of a piece of script, once it is something."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driven, 30).until(lambda d: d.execute_script(condition, *arguments))
