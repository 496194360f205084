"""What is wrong with a page as it stands: by axe, and by what moves on it."""

from __future__ import annotations

from axe_playwright_python import base
from playwright.sync_api import Page, ViewportSize

from tests.browser import looks

WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 360, "height": 844}
# What of axe's rules another look can break.
LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")


def findings(page: Page, where: str) -> list[str]:
    """Look at the page as it stands: wide and light in full, then narrow and dark for what that can change. Nothing may
    move on it, for who looks does not want that.

    It is loaded once. What axe asks of names, roles and order is the same in every look; colours and widths are not.
    """
    found = [f"{where}: {told}" for told in (*_ask_axe(page), *moving(page))]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    found += [f"{where}, narrow and dark: {told}" for told in _ask_axe(page, LOOKS)]
    found += [] if looks.fits(page) else [f"{where}: wider than {NARROW['width']} px"]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    return found


def _ask_axe(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(base.AXE_SCRIPT)
    violations = page.evaluate(_ASK_AXE, list(rules))
    return [
        f"{found['id']}, {found['help']}: {[node['html'][:160] for node in found['nodes'][:3]]}"
        for found in violations
    ]


# Axe takes longer for a page than the server and the browser. What is built and styled alike, in places that are styled
# alike, has the same findings: of the rows of a list, one of each kind is looked at; and the frame on one page only. An
# id that two rows share is looked for in all of them.
_ASK_AXE = """async (rules) => {
    const styled = [
        "class", "role", "type", "value", "style", "open", "hidden", "disabled", "checked", "scope", "tabindex",
        "aria-current", "aria-selected", "aria-sort", "aria-invalid", "aria-checked", "aria-pressed", "aria-hidden",
        "data-state", "data-shown", "data-stored", "data-color", "data-depth", "data-points", "data-copied",
        "data-group", "data-density", "data-theme", "data-row", "data-control",
    ];
    const own = (element) =>
        element.localName + styled.map((name) => element.getAttribute(name)) +
        element.getAttributeNames().map((name) => name + Boolean(element.getAttribute(name).trim()));
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const kinds = new Map();
    const kind = (element) => {
        kinds.set(element, `${own(element)}${hasText(element)}(${[...element.children].map(kind)})`);
        return kinds.get(element);
    };
    kind(document.body);
    const seen = new Set();
    const again = location.pathname === "/" ? [] : [...document.querySelectorAll("header.frame")];
    const walk = (element, above) => {
        const here = `${above}>${kinds.get(element)}`;
        if (seen.has(here)) return again.push(element);
        seen.add(here);
        for (const child of element.children) walk(child, `${above}>${own(element)}`);
    };
    walk(document.body, "");
    const options = { resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) };
    const { violations } = await axe.run({ exclude: again }, options);
    const ids = [...document.querySelectorAll("[id]")];
    const twice = ids.filter(({ id }, at) => ids.findIndex((other) => other.id === id) < at);
    const nodes = twice.map(({ outerHTML }) => ({ html: outerHTML }));
    return [...violations, ...(nodes.length ? [{ id: "duplicate-id", help: "Ids are unique", nodes }] : [])];
}"""


def moving(page: Page) -> list[str]:
    """Name what moves on the page, or would if something changed."""
    found: list[str] = page.evaluate(
        """() => {
            const lasts = (times) => times.split(",").some((time) => parseFloat(time) > 0);
            const moves = (style) =>
                (style.animationName !== "none" && lasts(style.animationDuration)) ||
                (style.transitionProperty !== "none" && lasts(style.transitionDuration)) ||
                style.scrollBehavior === "smooth";
            // One of each kind: to work out the style of all of them takes longer than the rest of the page.
            const kind = ({ localName, className, parentElement: over }) =>
                [localName, className, over?.localName, over?.className].join();
            const kinds = new Map([...document.querySelectorAll("*")].map((element) => [kind(element), element]));
            return [...kinds.values()].flatMap((element) =>
                [null, "::before", "::after"]
                    .filter((part) => moves(getComputedStyle(element, part)))
                    .map((part) => `${element.localName}.${element.className}${part ?? ""} moves`),
            );
        }"""
    )
    return found
