"""Configurations of other programs as belts: MindRoom, JD.AI, agent-adapter and SeaJelly.

A conversion is a function from the document of a file, and the belt that is stored, to an :class:`Adopted`. It reports
every problem with its path in that file, and lists what it leaves aside. If the shape of a file is wrong (a misplaced
or misspelt key, a list instead of a mapping), only that is reported, because everything else may follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.core import errors
from toolbelt.core.adoption import agent_adapter, jd_ai, mindroom, reading, seajelly

Adopted = reading.Adopted
Kind = reading.Kind
TITLES: Mapping[Kind, str] = {
    "mindroom": "MindRoom's configuration",
    "jd-ai": "JD.AI's loadouts",
    "agent-adapter": "agent-adapter's configuration",
    "seajelly": "SeaJelly's tools_config",
}
KINDS: tuple[Kind, ...] = tuple(TITLES)

# From the most specific to the least: a mapping of booleans is only recognized after all others.
_RECOGNIZED: Mapping[Kind, Callable[[Any], bool]] = {
    "agent-adapter": agent_adapter.recognizes,
    "mindroom": mindroom.recognizes,
    "jd-ai": jd_ai.recognizes,
    "seajelly": seajelly.recognizes,
}


def recognize(document: Any) -> Kind | None:
    """Return the kind of a file from its content; None if it is none of these, such as a belt."""
    return next((kind for kind, recognizes in _RECOGNIZED.items() if recognizes(document)), None)


def adopt(document: Any, stored: Mapping[str, Any], *, kind: Kind | None = None, agent: str = "") -> Adopted:
    """Return the belt for a file's document; ``stored`` is the belt of what is stored.

    Agents and toolkits that are stored keep what the file does not say. ``agent`` is whose tools_config it is, if the
    file does not say. Raise :class:`errors.Invalid` with the problems of the file's shape, or if the kind is unknown.
    """
    kind = kind or recognize(document)
    reader = reading.Reader()
    match kind:
        case "mindroom":
            adopted = mindroom.convert(document, stored, reader)
        case "jd-ai":
            adopted = jd_ai.convert(document, reader)
        case "agent-adapter":
            adopted = agent_adapter.convert(document, reader)
        case "seajelly":
            adopted = seajelly.convert(document, stored, reader, agent)
        case _:
            titles = ", ".join(TITLES.values())
            message = f"This is not recognized as {titles}. If it is one of them, name its kind: {', '.join(KINDS)}."
            raise errors.Invalid.of(message)
    if reader.problems:
        raise errors.Invalid(reader.problems)
    return adopted
