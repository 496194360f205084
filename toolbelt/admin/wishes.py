"""What does the writer of a form want, and where in the form is what stands against it?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import models
from toolbelt.control import actors, entries
from toolbelt.core import belts, errors, schema

# What one key of an agent's entry holds stands in two tables of its form.
FLAT, ENDS, SWITCHES, OVERRIDES = "tools_config", "ends", "switches", "overrides"
FAMILIES = (SWITCHES, OVERRIDES)
LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of one entry, in the keys that the form shows; None puts a key back to its default.

    ``seen`` is the entry as its writer saw it, None where they make a new one. ``confirmed`` names the flips
    and edits that they looked at a second time.
    """

    actor: actors.Actor
    kind: belts.KindName
    name: str
    wanted: Mapping[str, Any]
    seen: Mapping[str, Any] | None
    confirmed: frozenset[str] = frozenset()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What stands against a wish: at which key of the entry (empty: the whole), and where behind that."""

    key: str = ""
    rest: str = ""
    message: str = ""

    @property
    def text(self) -> str:
        """Say it away from its place."""
        return f"{self.key}{self.rest}: {self.message}" if self.key else self.message


class NotSaved(Exception):
    """Nothing was saved.

    ``obstacles`` say why; ``asked`` what has to be confirmed first, by a word without spaces each with what it would
    do; ``now`` holds what is stored under the keys where the writer saw something else.
    """

    def __init__(self) -> None:
        super().__init__()
        self.obstacles: list[Obstacle] = []
        self.asked: dict[str, str] = {}
        self.now: dict[str, Any] = {}

    def at(self, keys: Iterable[str]) -> list[Obstacle]:
        """Give what stands at these keys."""
        return [obstacle for obstacle in self.obstacles if obstacle.key in keys]


def located(wish: Wish, problem: errors.Problem) -> Obstacle:
    """Find the place of a problem in the form; one that is about something else keeps its path."""
    address = belts.address(wish.kind, {entries.naming(wish.kind): wish.name})
    rest = problem.path.removeprefix(address)
    if wish.kind == "category":
        return Obstacle(key="name", message=problem.message)
    if rest == problem.path or not rest.startswith("."):
        return Obstacle(message=problem.message if problem.path == address else str(problem))
    key = rest[1:].partition(".")[0].partition("[")[0]
    rest = rest[1 + len(key) :]
    if key == FLAT and rest:
        key = SWITCHES if parted({rest[1:]: True})[SWITCHES] else OVERRIDES
    return Obstacle(key=key, rest=rest, message=problem.message)


def grant(on: bool, at: str | None) -> Any:
    """Say what is set: on or off, or with its end, as ``{"on", "ends"}``."""
    return on if at is None else {"on": on, "ends": at}


def flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is set in an agent's entry, by key, each with its end if it has one."""
    ends = entry.get(ENDS) or {}
    return {key: grant(on, ends.get(key, {}).get("at")) for key, on in (entry.get(FLAT) or {}).items()}


def is_flat(entry: Mapping[str, Any]) -> bool:
    """Say whether what an entry of an agent says of switches, overrides and their ends has the shape of that."""
    ends = entry.get(ENDS, {})
    return (
        isinstance(entry.get(FLAT, {}), dict)
        and isinstance(ends, dict)
        and all(isinstance(end, dict) for end in ends.values())
    )


def is_on(said: Any) -> bool | None:
    """Read from what :func:`grant` gives whether it is on, off or unset (None)."""
    found: bool | None = said["on"] if isinstance(said, dict) else said
    return found


def end(said: Any) -> str | None:
    """Read from what :func:`grant` gives when it ends."""
    return said["ends"] if isinstance(said, dict) else None


def parted(flat: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Part a flat tools_config into switches and overrides: what is no toolkit counts as a tool."""
    toolkits = set(models.Toolkit.objects.filter(key__in=flat).values_list("key", flat=True))
    return {
        SWITCHES: {key: on for key, on in flat.items() if key in toolkits},
        OVERRIDES: {key: on for key, on in flat.items() if key not in toolkits},
    }


def in_words(what: str, error: errors.ConfirmationRequired) -> str:
    """Say what a flip or an edit would do, beside the box that confirms it; ``what`` names it."""
    found = error.differences
    said = [f"{what}: {error}"]
    said.append("Tools {} → {}, tokens {} → {}.".format(*found["tools"], *found["tokens"]))
    for words, which in (("These come", "added"), ("These go", "removed")):
        if found[which]:
            said.append(f"{words}: {', '.join(found[which])}.")
    return " ".join(said)


def shown(value: Any) -> Any:
    """Give a value as it can stand in a sentence: a policy text may be pages long."""
    if value is None or isinstance(value, bool):
        return value
    text = value if isinstance(value, str) else schema.canonical(value)
    return textwrap.shorten(text, LONGEST_SHOWN, placeholder=" …")
