"""What each state of a switch or an override would do."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.control.access import switches
from toolbelt.core import effects as values
from toolbelt.web.kit import model, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One state that could be wanted ("On"), and what it would do ("+3 tools, +820 tokens"); `notes` go on from there.

    `is_now` says that it is so already.
    """

    word: str
    short: str
    notes: tuple[str, ...] = ()
    is_now: bool = False


_STATES = (True, False, None)


def page(agent: str, key: str) -> pieces.View:
    """Return what each state of a toolkit's switch or a tool's override would do. Raises errors.NotFound."""
    had = switches.current_value(agent, key)
    would = switches.previews(agent, key, [on for on in _STATES if on is not had])
    return pieces.View(
        agent=agent,
        key=key,
        lines=tuple(_line({True: "On", False: "Off", None: "Default"}[on], would.get(on)) for on in _STATES),
    )


def _line(word: str, effect: values.Effect | None) -> Line:
    if effect is None:
        return Line(word=word, short="current setting", is_now=True)
    return Line(
        word=word,
        short=model.in_short(effect),
        notes=model.consequences(effect.breaks, effect.sessions),
    )
