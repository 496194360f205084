"""The looks in which journeys are tried, and what must hold in each.

Three things vary: how wide the window is, which colours it has, and whether scripts run. A test runs in one look,
chosen by its name, so that each journey costs one run. Without scripts, a browser does what Django's test client does:
tests/web covers what each form does then, and only a few journeys are here. `test_accessible` sees each page in others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page

PHONE = 600
# The least height of what a finger presses, and of what a mouse does (WCAG 2.2, 2.5.5 and 2.5.8).
FINGER, MOUSE = 44, 24


@dataclass(frozen=True, slots=True)
class Look:
    """How an operator looks at the pages."""

    width: int
    theme: str
    scripts: bool = True

    @property
    def is_phone(self) -> bool:
        return self.width < PHONE

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}{'' if self.scripts else '-plain'}"


DESK = Look(1440, "light")
PHONE_AT_NIGHT = Look(390, "dark")
PLAIN = (Look(1440, "dark", scripts=False), Look(390, "light", scripts=False))

Test = Callable[..., None]


def _in_one_of(looks: Sequence[Look]) -> Callable[[Test], Test]:
    """Return a decorator that runs a test in one of the looks, always the same one."""

    def run_in_one(test: Test) -> Test:
        look = looks[zlib.crc32(test.__name__.encode()) % len(looks)]
        marked: Test = pytest.mark.parametrize("look", [look], ids=str)(test)
        return marked

    return run_in_one


with_scripts = _in_one_of((DESK, PHONE_AT_NIGHT))
without_scripts = _in_one_of(PLAIN)


def fits(page: Page) -> bool:
    """Return whether nothing reaches out of the window to the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def too_small(page: Page) -> list[str]:
    """Name the controls that are too small for what presses them in this window."""
    width: int = page.evaluate("innerWidth")
    found: list[str] = page.evaluate(_TOO_SMALL, FINGER if width < PHONE else MOUSE)
    return found


def complaints(page: Page) -> list[str]:
    """Return what is wrong with the page as it stands in this window."""
    said = [f"too small: {one}" for one in too_small(page)]
    return said if fits(page) else ["wider than its window", *said]


# What is pressed may be larger than what is drawn: a part after it may reach out of it.
_TOO_SMALL = """(least) => {
    const pressed = "main :is(button, summary, .segments input, .chip), dialog[open] button, .toast button";
    return [...document.querySelectorAll(pressed)]
        .filter((element) => element.checkVisibility() && !element.ariaHidden)
        .map((element) => {
            const more = getComputedStyle(element, "::after");
            const box = element.getBoundingClientRect();
            const drawn = more.position === "absolute" && more.content !== "none";
            const height = Math.max(box.height, drawn ? parseFloat(more.height) || 0 : 0);
            const width = Math.max(box.width, drawn ? parseFloat(more.width) || 0 : 0);
            return [element.outerHTML.replace(/\\s+/g, " ").slice(0, 90), width, height];
        })
        .filter(([, width, height]) => height && (height < least - 0.5 || width < 24))
        .map(([text, width, height]) => `${text}: ${width} x ${height}`);
}"""
