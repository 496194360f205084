"""The accessibility problems of a page: findings of axe, motion, and a layout that does not fit a phone."""

from __future__ import annotations

from axe_playwright_python import base
from playwright.sync_api import Page, ViewportSize

from tests.browser import devices

WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 360, "height": 844}
# The rules of axe whose result depends on the width or the theme.
APPEARANCE_RULES = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")


def problems(page: Page, name: str, part: str = "") -> list[str]:
    """Return the problems of a page in its present state, and only of one ``part`` of it if a selector is given.

    The page is loaded once: axe runs all of its rules in a wide window with the light theme, and then those that depend
    on the appearance in a narrow window with the dark theme, on a touch screen. Names, roles and order are the same in
    both. Nothing may move, because the page is loaded with reduced motion.
    """
    found = [f"{name}: {problem}" for problem in (*_run_axe(page, part), *moving_elements(page))]
    devtools = page.context.new_cdp_session(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    narrow = [*_run_axe(page, part, APPEARANCE_RULES), *devices.layout_problems(page)]
    found += [f"{name}, narrow and dark: {problem}" for problem in narrow]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    devtools.detach()
    return found


def _run_axe(page: Page, part: str, rules: tuple[str, ...] = ()) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(base.AXE_SCRIPT)
    violations = page.evaluate(_RUN_AXE, [part, list(rules)])
    return [
        f"{violation['id']}, {violation['help']}: {[node['html'][:160] for node in violation['nodes'][:3]]}"
        for violation in violations
    ]


# Axe takes longer for a page than the server and the browser do. Elements of the same structure and style have the same
# findings, so axe sees only one of each kind, for example of the rows of a list, and sees the frame on one page only.
# It need not load the style sheets again: none of its default rules reads them. Duplicate ids are found everywhere.
_RUN_AXE = """async ([part, rules]) => {
    const relevant = [
        "class", "role", "type", "value", "style", "open", "hidden", "disabled", "checked", "scope", "tabindex",
        "aria-current", "aria-selected", "aria-sort", "aria-invalid", "aria-checked", "aria-pressed", "aria-hidden",
        "data-state", "data-shown", "data-stored", "data-color", "data-depth", "data-points", "data-copied",
        "data-group", "data-density", "data-theme", "data-row", "data-control",
    ];
    const own = (element) =>
        element.localName + relevant.map((name) => element.getAttribute(name)) +
        element.getAttributeNames().map((name) => name + Boolean(element.getAttribute(name).trim()));
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const kinds = new Map();
    const kind = (element) => {
        kinds.set(element, `${own(element)}${hasText(element)}(${[...element.children].map(kind)})`);
        return kinds.get(element);
    };
    kind(document.body);
    const seen = new Set();
    const repeated = location.pathname === "/" ? [] : [...document.querySelectorAll("header.frame")];
    const walk = (element, path) => {
        const here = `${path}>${kinds.get(element)}`;
        if (seen.has(here)) return repeated.push(element);
        seen.add(here);
        for (const child of element.children) walk(child, `${path}>${own(element)}`);
    };
    walk(document.body, "");
    const context = { exclude: repeated, ...(part ? { include: part } : {}) };
    const options = { resultTypes: ["violations"], preload: false, ...(rules.length ? { runOnly: rules } : {}) };
    const { violations } = await axe.run(context, options);
    const ids = [...document.querySelectorAll("[id]")];
    const first = new Map(ids.map((element) => [element.id, element]).reverse());
    const repeats = ids.filter((element) => first.get(element.id) !== element);
    const nodes = repeats.map(({ outerHTML }) => ({ html: outerHTML }));
    return [...violations, ...(nodes.length ? [{ id: "duplicate-id", help: "Ids are unique", nodes }] : [])];
}"""


def moving_elements(page: Page) -> list[str]:
    """Return the elements that move, or would if the page changed."""
    elements: list[str] = page.evaluate(
        """() => {
            const takesTime = (times) => times.split(",").some((time) => parseFloat(time) > 0);
            const moves = (style) =>
                (style.animationName !== "none" && takesTime(style.animationDuration)) ||
                (style.transitionProperty !== "none" && takesTime(style.transitionDuration)) ||
                style.scrollBehavior === "smooth";
            // One of each kind: computing the style of all elements takes longer than the rest of the page.
            const kind = ({ localName, className, parentElement: parent }) =>
                [localName, className, parent?.localName, parent?.className].join();
            const kinds = new Map([...document.querySelectorAll("*")].map((element) => [kind(element), element]));
            return [...kinds.values()].flatMap((element) =>
                [null, "::before", "::after"]
                    .filter((part) => moves(getComputedStyle(element, part)))
                    .map((part) => `${element.localName}.${element.className}${part ?? ""} moves`),
            );
        }"""
    )
    return elements
