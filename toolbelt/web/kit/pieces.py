"""Small view models that several pages share."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import forms

from toolbelt.core import effects

if TYPE_CHECKING:
    from toolbelt.web.kit import notices

# The states of a switch or an override, with the labels of the buttons that set them.
SWITCH_ACTIONS = (("true", "Turn on"), ("false", "Turn off"), ("unset", "Reset to default"))


class View:
    """What a template shows. Each name is declared where its value is computed, in ``__init__`` of a subclass, so that
    the type checker knows all names and types.
    """

    # Templates look for an item before an attribute: without this, each name would cost an exception.
    __getitem__ = object.__getattribute__


class Page(View):
    """What the template of a whole page shows, with the notice of what happened before."""

    notice: notices.Notice | None = None


class FormPage(Page):
    """A page that shows only a form."""

    def __init__(self, form: forms.Form) -> None:
        self.form = form


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a select or of a row of chips; `count` follows the label unless it is None."""

    value: str
    label: str
    chosen: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One changed value. `now` is set if an undo finds a third value; `label` is a field, or the key of an entry."""

    label: str
    before: str
    after: str
    now: str | None = None
    is_tool: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a change on what the model sees: tools and tokens before and after, and ``notes`` on other effects
    ("replaces policy devops with its text for when it is off", "2 live sessions").
    """

    tools: tuple[int, int]
    tokens: tuple[int, int]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, summed: Sequence[effects.Effect], notes: Iterable[str] = ()) -> Effect:
        """Return the sum of the effects, with these notes."""
        return cls(
            tools=(sum(each.tools_before for each in summed), sum(each.tools_after for each in summed)),
            tokens=(sum(each.tokens_before for each in summed), sum(each.tokens_after for each in summed)),
            notes=tuple(notes),
        )


def choices(
    labels: Mapping[str, str] | Iterable[str],
    chosen: str,
    any_label: str = "",
    counts: Mapping[str, int] = types.MappingProxyType({}),
    label: Callable[[str], str] = str,
) -> tuple[Choice, ...]:
    """Return options from values and their labels, or from names, whose labels ``label`` returns. With ``any_label``,
    the first option means no choice, and is chosen for unknown choices.
    """
    pairs = labels if isinstance(labels, Mapping) else {name: label(name) for name in labels}
    first = [Choice(value="", label=any_label, chosen=chosen not in pairs)] if any_label else []
    return (
        *first,
        *(
            Choice(value=value, label=label, chosen=value == chosen, count=counts.get(value))
            for value, label in pairs.items()
        ),
    )
