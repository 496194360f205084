"""The devices that tests use the dashboard on, and the checks of a page's layout that hold on each of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page

# Narrower windows, in CSS pixels, get the layout of a phone.
PHONE_MAX_WIDTH = 600
# The minimum height of a control that is pressed with a finger, and with a mouse (WCAG 2.2, 2.5.5 and 2.5.8).
TOUCH_MIN_HEIGHT, MOUSE_MIN_HEIGHT = 44, 24


@dataclass(frozen=True, slots=True)
class Device:
    """A window of a certain width, in a color scheme, with or without JavaScript."""

    width: int
    theme: str
    scripts: bool = True

    @property
    def is_phone(self) -> bool:
        return self.width < PHONE_MAX_WIDTH

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}{'' if self.scripts else '-no-scripts'}"


DESKTOP = Device(1440, "light")
PHONE = Device(390, "dark")

# A test runs on DESKTOP unless it has one of these marks. Django's test client does what a browser without JavaScript
# does: tests/web covers each form that way, so one journey without it is enough.
on_phone = pytest.mark.parametrize("browser_device", [PHONE], ids=str)
without_scripts = pytest.mark.parametrize("browser_device", [Device(390, "light", scripts=False)], ids=str)


def fits_window(page: Page) -> bool:
    """Return whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def small_controls(page: Page) -> list[str]:
    """Return a description of each control that is too small for this window's pointer."""
    width: int = page.evaluate("innerWidth")
    controls: list[str] = page.evaluate(
        _SMALL_CONTROLS, TOUCH_MIN_HEIGHT if width < PHONE_MAX_WIDTH else MOUSE_MIN_HEIGHT
    )
    return controls


def layout_problems(page: Page) -> list[str]:
    """Return what is wrong with the layout of the page in its present state."""
    problems = [f"too small: {control}" for control in small_controls(page)]
    return problems if fits_window(page) else ["wider than its window", *problems]


# The area that can be pressed may be larger than the visible control: its ::after may extend beyond it.
_SMALL_CONTROLS = """(minimum) => {
    const controls = "main :is(button, summary, .segments input, .chip), dialog[open] button, .toast button";
    return [...document.querySelectorAll(controls)]
        .filter((element) => element.checkVisibility() && !element.ariaHidden)
        .map((element) => {
            const after = getComputedStyle(element, "::after");
            const box = element.getBoundingClientRect();
            const extends_ = after.position === "absolute" && after.content !== "none";
            const height = Math.max(box.height, extends_ ? parseFloat(after.height) || 0 : 0);
            const width = Math.max(box.width, extends_ ? parseFloat(after.width) || 0 : 0);
            return [element.outerHTML.replace(/\\s+/g, " ").slice(0, 90), width, height];
        })
        .filter(([, width, height]) => height && (height < minimum - 0.5 || width < 24))
        .map(([text, width, height]) => `${text}: ${width} x ${height}`);
}"""
