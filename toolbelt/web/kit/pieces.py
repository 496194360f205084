"""Small values that several pages show."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbelt.core import effects

# The states of a switch or an override, with what the buttons that set them say.
SETTINGS = (("true", "Turn on"), ("false", "Turn off"), ("unset", "Reset to default"))


class View(types.SimpleNamespace):
    """The values that a template shows, by name. Each name is declared once: where a view model computes its value."""

    def __getitem__(self, name: str) -> object:
        # Templates look for an item before an attribute: without this, each name would cost an exception.
        return self.__dict__[name]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.__dict__.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a select or of a row of chips; `count` is printed behind the label unless it is None."""

    value: str
    label: str
    chosen: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One line of "this becomes that". `now` is set if an undo finds a third state; `what` may be the key of a tool."""

    what: str
    before: str
    after: str
    now: str | None = None
    is_tool: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a change on what the model sees: tools and tokens before and after, and ``notes`` on effects that
    are not numbers ("replaces policy devops with its text for when it is off", "2 live sessions").
    """

    tools: tuple[int, int]
    tokens: tuple[int, int]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, every: Sequence[effects.Effect], notes: Iterable[str] = ()) -> Effect:
        """Return the sums of effects, with these notes."""
        return cls(
            tools=(sum(effect.tools_before for effect in every), sum(effect.tools_after for effect in every)),
            tokens=(
                sum(effect.tokens_before for effect in every),
                sum(effect.tokens_after for effect in every),
            ),
            notes=tuple(notes),
        )


def choices(
    labels: Mapping[str, str] | Iterable[str],
    chosen: str,
    anything: str = "",
    counts: Mapping[str, int] = types.MappingProxyType({}),
    label: Callable[[str], str] = str,
) -> tuple[Choice, ...]:
    """Return options from values and their labels, or from names, which ``label`` words; ``anything`` labels a first
    one, for no or an unknown choice.
    """
    pairs = labels if isinstance(labels, Mapping) else {name: label(name) for name in labels}
    first = [Choice(value="", label=anything, chosen=chosen not in pairs)] if anything else []
    return (
        *first,
        *(
            Choice(value=value, label=label, chosen=value == chosen, count=counts.get(value))
            for value, label in pairs.items()
        ),
    )
