"""What does the line above a list show that sets all of it alike?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The line: where it asks (`action`), the filter as hidden `fields`, and `count` of what is shown, in words.

    `what` is "tools" or "toolkits". `agents` can be ticked (none ticked: all of them), or one of `toolkits` chosen,
    where the list does not say it. `words` are the states to set, with what their buttons say.
    """

    action: str
    fields: tuple[pieces.Field, ...]
    count: str
    what: str
    words: tuple[tuple[str, str], ...]
    agents: tuple[str, ...] = ()
    toolkits: tuple[pieces.Choice, ...] = ()
