"""A toolkit's switch for one agent, wherever a page shows it: on Access, in the matrix and on the toolkit's page."""

from __future__ import annotations

from collections.abc import Collection

from toolbelt.core import reasons, resolution
from toolbelt.web.kit import pieces, words


def view(
    stored: bool | None,
    decisions: Collection[resolution.Decision],
    *,
    since: str = "",
    until: str = "",
    by: str = "",
) -> pieces.View:
    """Return the switch: it shows whether the model has the toolkit's tools, and a press requests the opposite.

    ``shown`` is "on", "partly" or "off". ``stored`` is "unset" where nothing is stored. ``other`` is the value of the
    link beside the switch: it removes what is stored, or stores what holds by default. ``futile`` says why turning
    the switch on has no effect, if it has none.
    """
    active = sum(decision.state == "active" for decision in decisions)
    shown = "off" if not active else "on" if active == len(decisions) else "partly"
    is_loadable = any(decision.state == "discoverable" for decision in decisions)
    off = words.STATES["discoverable" if is_loadable else "denied"]
    basis, other, label = "", "unset", "Reset to default"
    if stored is None:
        basis, other, label = "Default", *(("true", "Set to On") if active else ("false", "Set to Off"))
    elif stored and not active:
        basis = "set to On"
    return pieces.View(
        stored=words.stored(stored),
        shown=shown,
        wants="false" if active else "true",
        words={"off": off, "on": "On", "partly": f"{active} of {len(decisions)} on"}[shown],
        basis=basis,
        other=other,
        label=label,
        futile=_futile(decisions) if not active else "",
        since=since,
        until=until,
        by=by,
    )


def _futile(decisions: Collection[resolution.Decision]) -> str:
    if not decisions or not all(decision.holds_whatever_the_switch for decision in decisions):
        return ""
    return f"turning it on has no effect: {reasons.explain_briefly(next(iter(decisions)))}"
