"""What do all tests share? A browser that is the system's own, and properties without a stopwatch."""

import os
import shutil
from typing import Any

import hypothesis
import pytest

# A loaded machine is no fault of the code. With CI set, hypothesis brings a profile that says the same.
hypothesis.settings.register_profile("local", deadline=None)
if "CI" not in os.environ:
    hypothesis.settings.load_profile("local")

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    # Playwright keeps an event loop running in the thread of the tests, and they use the database there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {
        **browser_type_launch_args,
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox",  # Chromium refuses to start as root with one
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }
