"""How is the preview of a flip filled: its effect before it is applied?"""

from __future__ import annotations

from toolbelt.control import queries, switches
from toolbelt.core import effects as values
from toolbelt.web.pages import model
from toolbelt.web.presenters import effects

_STATES = (True, False, None)


def page(agent: str, key: str) -> effects.EffectPage:
    """Say what each state of a toolkit's switch or a tool's override would do. Raises errors.NotFound."""
    had = switches.standing(agent, key)
    unset = "Follow defaults" if queries.is_toolkit(key) else "Inherit"
    would = switches.previews(agent, key, [on for on in _STATES if on is not had])
    return effects.EffectPage(
        agent=agent,
        key=key,
        lines=tuple(_line({True: "On", False: "Off", None: unset}[on], would.get(on)) for on in _STATES),
    )


def _line(word: str, effect: values.Effect | None) -> effects.Line:
    if effect is None:
        return effects.Line(word=word, short="as it is now", is_now=True)
    return effects.Line(
        word=word,
        short=model.in_short(effect),
        notes=model.consequences(effect.breaks, effect.sessions),
    )
